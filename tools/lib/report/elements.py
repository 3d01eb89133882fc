"""The five papers: each figure, table and worked example, and which experiments of the simulator are it.

An element without experiments says why. What an experiment does not reproduce, its own text and checks say.
"""
import dataclasses


@dataclasses.dataclass(frozen=True)
class Element:
    label: str        # "Figure 9(a)"
    about: str        # what the paper shows there
    experiments: tuple = ()
    note: str = ""    # why there is no experiment, or what stands in its place
    lacks: str = ""   # what of it is not reproduced, and why


@dataclasses.dataclass(frozen=True)
class Paper:
    key: str          # anchor, and what `source` of the experiments begins with
    title: str
    reference: str
    elements: tuple


ARCHITECTURE = "A drawing of the architecture: no data."

DSFQ = Paper("DSFQ", "DSFQ: Proportional-Share Scheduling for Distributed Storage Systems", "Wang, Merchant, FAST 2007", (
    Element("Figures 1 to 4, 6", "A distributed storage system, its data access, the example of streams f and g, the framework",
            note=ARCHITECTURE),
    Element("Table 1", "Symbols", note="A list of symbols: no data."),
    Element("Figures 5, 7", "Delay counters of one and of two coordinators", ("E1",)),
    Element("Examples 1, 2; theorem 3", "Rates under total sharing, and a stream that is blocked", ("E11",)),
    Element("Theorems 1, 2, 4", "Bounds of unfairness", ("E10",)),
    Element("Figure 8", "Proportional sharing on one brick, 1 : 2", ("E2",)),
    Element("Figure 9(a)", "Total sharing, 1 : 1", ("E3",)),
    Element("Figure 9(b)", "Total sharing, 1 : 4, larger files", ("E4",)),
    Element("Figure 10", "Total sharing with a striped stream", ("E5",)),
    Element("Figure 11", "Several coordinators", ("E6",),
            lacks="The closer match of totals with more coordinators: seen with bursts, not with the figure's own workload, which is smooth."),
    Element("Figure 12", "HYBRID-DSFQ with one and two coordinators", ("E7",),
            lacks="Totals balanced up to 4 MB/s on B: they are up to 2.5; at 3.6 they are 9 % off, 4 % on a flat brick."),
    Element("Figure 13", "A workload that goes on and off", ("E8",)),
    Element("Figure 14", "Sinusoidal workloads under four schedulers", ("E9",),
            note="(a), the number of threads, is an input; here its periods are given in the set-up."),
    Element("§3.4", "Bursts that HYBRID forgets, which the paper leaves open; HYBRID-H is ours", ("E12",)),
))

VD = Paper("VD", "VD: Spatial-Locality-Aware Virtual Storage Devices with Tangible QoS Expressions", "Yan, Jiang", (
    Element("Figure 1", "Clocks of three virtual disks, spare time, lent turns", ("E13",)),
    Element("Figure 2", "Two saturated sequential flows on 75 % and 25 % of a disk", ("E14",)),
    Element("Figure 3", "The locality of one flow changes", ("E15",)),
    Element("Figure 4", "The same when requests are counted and not time", ("E16", "E58")),
    Element("Figure 5", "A mail server beside a sequential flow", ("E17",)),
    Element("Figure 6", "Locality that a latency of 0.3 s needs", ("E18",), note="How much larger the feasible area is, the text does not say."),
    Element("Figures 7, 8", "Bursts into a latency disk beside patient and impatient neighbours", ("E19",),
            lacks="Tolerance of 5 % better than 0 with pauses in the flow: the disk saves up more than its bursts take."),
    Element("§3.1", "What a share is worth, and its cap", ("E20",)),
))

BAA = Paper("BAA", "BAA: Balancing Fairness and Efficiency in Tiered Storage Systems with Bottleneck-Aware Allocation",
            "Wang, Varman, FAST 2014", (
                Element("Figure 1", "Model of tiered storage", note=ARCHITECTURE),
                Element("Table 1", "Symbols", note="A list of symbols: no data."),
                Element("Example I, figure 2", "Two clients under FQ, DRF and with both tiers full", ("E21",)),
                Element("Example II", "Filling both tiers can make envious", ("E22",)),
                Element("Examples III to V", "Bottleneck sets, fair shares, envy bounds, the program", ("E23",)),
                Element("Figure 3", "Two flows, HD 100 and SSD 5000 IOPS", ("E24",)),
                Element("Figure 4", "Three flows", ("E25",)),
                Element("Figure 5", "A hit ratio changes", ("E26",)),
                Element("Table 2", "All clients in one bottleneck set", ("E27",),
                        note="CFQ is no policy of ours; FQ stands beside."),
                Element("Figures 6, 7", "Throughput and utilisation with Financial and Exchange", ("E28",),
                        note="CFQ is no policy of ours; FQ stands beside.",
                        lacks="The figure's numbers: its capacities are not in the paper, and none fit its totals and utilisations."),
                Element("Table 3", "Four Financial workloads", ("E29",)),
                Element("§3.2, §4", "Properties P1 to P4", ("E30",)),
                Element("§3.3", "The division over OSDs instead of one array", ("E30b",)),
            ))

STONEHENGE = Paper("Stonehenge", "Stonehenge: Multi-Dimensional Storage Virtualization", "Huang, Peng, Chiueh, SIGMETRICS 2004", (
    Element("Figure 1", "Data flow of the cluster", note=ARCHITECTURE),
    Element("Equations 1 to 11", "Finish times, latest starts, delay bounds, admission", ("E31",)),
    Element("Table 1, figure 2", "Three virtual disks over three nodes under C-SCAN and CVC", ("E32",)),
    Element("Table 2", "How many virtual disks are admitted", ("E33",),
            lacks="An oracle as near to measurement as the paper's: ours runs the very same arrivals again."),
    Element("Table 3", "What is reserved as they are admitted", ("E34",)),
    Element("Table 4", "The probability E and admission", ("E35",),
            lacks="An oracle as near to measurement as the paper's: ours runs the very same arrivals again."),
    Element("Figure 3(a), (b)", "Efficiency and late requests as spare throughput shrinks", ("E36",)),
    Element("Figure 3(c)", "Efficiency with two video streams", ("E37",),
            lacks="1.5 to 1.8 of CVC over VC: our disk has no read-ahead, so that VC loses more; with all of it no order costs anything."),
    Element("Figure 4", "The leeway factor", ("E38",)),
    Element("Figure 5", "The estimate of a disk's service time", ("E39",), lacks="The knee of (a): the efficiency falls evenly; (b) is not quite flat beyond P90."),
    Element("§5.1", "The central manager", ("E40",), note="Only the simulator has such a manager: our OSDs compute finish times themselves."),
))

AQUA = Paper("AQuA", "AQuA: An Adaptive Quality of Service Aware Object-Based Storage Device", "Wu, Brandt, MSST 2006", (
    Element("Figures 1 to 6", "Ceph, data flows, throttling, the framework, an OSD and its scheduler", note=ARCHITECTURE),
    Element("Figure 7", "The global token rate and what the disk attains", ("E44",)),
    Element("Figure 8", "Three writers without QoS", ("E41",),
            lacks="That large blocks are why little is lost: on the modelled disk it is its cache."),
    Element("Figure 9", "Reservations of 5, 15 and 20 MB/s", ("E42",)),
    Element("Figure 10", "The same with the bandwidth maximizer", ("E43",)),
    Element("§5.1, §5.2", "Admission, expiry, class 0", ("E45",)),
    Element("§6, future work", "Transactions within a class", ("E46",)),
    Element("§3", "A class striped over OSDs", ("E47",)),
))

PAPERS = (AQUA, DSFQ, VD, BAA, STONEHENGE)


def of_papers():
    return {experiment for paper in PAPERS for element in paper.elements for experiment in element.experiments}
