// E21-E23, E29: the worked examples and table 3 of the BAA paper, by formula and on an array.
#include "tools/sim/experiments/all.h"
#include "tools/sim/experiments/tiered_setup.h"
#include "tools/sim/oracles/tier_fairness.h"

namespace weir::sim {
namespace {

using osd::qos::BottleneckAllocation;
using osd::qos::EnvyBounds;
using osd::qos::SolveBottleneckAware;
using osd::qos::TierClient;
using osd::qos::Tiers;

void NearAll(Run& run, const std::string& name, const std::vector<double>& measured,
             const std::vector<double>& expected, double tolerance) {
  for (size_t i = 0; i < expected.size(); ++i) {
    run.Near(name + ", client " + std::to_string(i + 1), measured[i], expected[i], tolerance);
  }
}

void NearParts(Run& run, const std::string& name, const std::vector<double>& measured,
               const std::vector<double>& expected, double part) {
  for (size_t i = 0; i < expected.size(); ++i) {
    run.NearPart(name + ", client " + std::to_string(i + 1), measured[i], expected[i], part);
  }
}

// Figure 2: what each of three divisions gives, and how busy it keeps the SSD.
void DrawExampleOne(Run& run, const Tiers& tiers, const std::vector<TierClient>& clients) {
  Figure figure{"1: equal rates (FQ), 2: 1 : 5 (BAA), 3: 9 : 25 (DRF)",
                "division",
                "IOPS; % of the SSD",
                {{"client 1", {}, {}}, {"client 2", {}, {}}, {"SSD, %", {}, {}}}};
  const std::vector<std::vector<double>> divisions{FairQueueingRates(tiers, clients),
                                                   SolveBottleneckAware(tiers, clients).rates,
                                                   DominantResourceRates(tiers, clients)};
  for (size_t d = 0; d < divisions.size(); ++d) {
    const std::vector<double> values{divisions[d][0], divisions[d][1],
                                     100 * Utilisation(tiers, clients, divisions[d])[1]};
    for (size_t i = 0; i < values.size(); ++i) {
      figure.curves[i].x.push_back(static_cast<double>(d + 1));
      figure.curves[i].y.push_back(values[i]);
    }
  }
  run.Draw(std::move(figure));
}

void RunExampleOne(Run& run) {
  const Tiers tiers = HdAndSsd(100, 500);
  const std::vector<double> hits{.5, .9};
  const auto clients = ClientsOf(hits);
  const auto fq = FairQueueingRates(tiers, clients);
  NearAll(run, "FQ, IOPS", fq, {166.67, 166.67}, .01);
  run.Near("FQ, SSD busy", Utilisation(tiers, clients, fq)[1], .4667, .0001);
  const std::vector<double> one_to_five{100, 500};
  run.Near("1 : 5, HD busy", Utilisation(tiers, clients, one_to_five)[0], 1, 1e-9);
  run.Near("1 : 5, SSD busy", Utilisation(tiers, clients, one_to_five)[1], 1, 1e-9);
  const auto drf = DominantResourceRates(tiers, clients);
  NearAll(run, "DRF, IOPS", drf, {128.57, 357.14}, .01);
  run.Near("DRF, SSD busy", Utilisation(tiers, clients, drf)[1], .7714, .0001);
  const BottleneckAllocation baa = SolveBottleneckAware(tiers, clients);
  run.Near("alpha: client 1 just does not envy at 1 : 5", TwoTierEnvyBounds(tiers, clients).alpha,
           .5556, .0001);
  run.Near("rho of the HD set", baa.amplification[0], 1.0, 1e-6);
  run.Near("rho of the SSD set", baa.amplification[1], 1.8, 1e-6);
  NearAll(run, "BAA, IOPS", baa.rates, {100, 500}, 1e-6);
  run.True("BAA keeps P1-P4", JudgeTierFairness(tiers, clients, baa.rates).all());

  DrawExampleOne(run, tiers, clients);

  const TieredResult array =
      RunArray(run, tiers, hits, WeightsOf(TierPolicy::kBottleneckAware, tiers, hits));
  NearParts(run, "array under BAA, IOPS", array.iops, {100, 500}, .04);
}

void RunExampleTwo(Run& run) {
  const Tiers tiers = HdAndSsd(100, 500);
  const auto clients = ClientsOf({.5, .5, .9});
  const auto fq = FairQueueingRates(tiers, clients);
  NearAll(run, "FQ, IOPS", fq, {90.91, 90.91, 90.91}, .01);
  run.Near("FQ, SSD busy", Utilisation(tiers, clients, fq)[1], .345, .001);
  const std::vector<double> full{50, 50, 500};
  const auto busy = Utilisation(tiers, clients, full);
  run.Near("1 : 1 : 10 fills the HD", busy[0], 1, 1e-9);
  run.Near("1 : 1 : 10 fills the SSD", busy[1], 1, 1e-9);
  run.True("1 : 1 : 10 makes the first two envy the third",
           !JudgeTierFairness(tiers, clients, full).envy_free);
  const auto drf = DominantResourceRates(tiers, clients);
  NearAll(run, "DRF, IOPS", drf, {78.26, 78.26, 217.39}, .01);
  run.Near("DRF, SSD busy", Utilisation(tiers, clients, drf)[1], .548, .001);
  const BottleneckAllocation baa = SolveBottleneckAware(tiers, clients);
  NearAll(run, "BAA, IOPS (not in the paper)", baa.rates, {66.67, 66.67, 333.33}, .01);
  run.Near("BAA, SSD busy", baa.utilisation[1], .7333, .0001);
  run.True("BAA keeps P1-P4", JudgeTierFairness(tiers, clients, baa.rates).all());
}

void RunExamplesThreeToFive(Run& run) {
  const Tiers tiers = HdAndSsd(200, 1000);
  const std::vector<double> hits{.75, .5, .9, .95};
  const auto clients = ClientsOf(hits);
  run.Near("hit ratio of balance", 1000.0 / 1200, .8333, .0001);
  const std::vector<size_t> sets{0, 0, 1, 1};
  for (size_t i = 0; i < 4; ++i) {
    run.True("client " + std::to_string(i + 1) + (sets[i] == 0 ? " is HD-bound" : " is SSD-bound"),
             BottleneckOf(tiers, clients[i]) == sets[i]);
  }
  const auto shares = FairShares(tiers, clients);
  NearAll(run, "fair share, IOPS", shares, {200, 100, 277.78, 263.16}, .01);
  run.Near("sum of f, HD set", shares[0] + shares[1], 300, .01);
  run.Near("sum of f, SSD set", shares[2] + shares[3], 540.94, .01);
  for (size_t i = 0; i < 2; ++i) {
    for (size_t j = 2; j < 4; ++j) {
      const std::string pair = std::to_string(i + 1) + std::to_string(j + 1);
      const double upper[2][2] = {{1.2, 1.267}, {1.8, 1.9}};
      const double lower[2][2] = {{.4, .2}, {.2, .1}};
      run.Near("rule 3, h_j / h_i, " + pair, hits[j] / hits[i], upper[i][j - 2], .001);
      run.Near("rule 3, m_j / m_i, " + pair, (1 - hits[j]) / (1 - hits[i]), lower[i][j - 2], .001);
    }
  }
  const EnvyBounds envy = TwoTierEnvyBounds(tiers, clients);
  run.Near("alpha", envy.alpha, .5556, .0001);
  run.Near("beta", envy.beta.value_or(0), 1.6667, .0001);
  const BottleneckAllocation baa = SolveBottleneckAware(tiers, clients);
  run.Near("rho_d (text: 1.41)", baa.amplification[0], 1.4126, .0001);
  run.Near("rho_s (text: 1.44)", baa.amplification[1], 1.4350, .0001);
  NearAll(run, "BAA, IOPS", baa.rates, {282.52, 141.26, 398.60, 377.62}, .05);
  run.Near("HD busy", baa.utilisation[0], 1, 1e-6);
  run.Near("SSD busy", baa.utilisation[1], 1, 1e-6);
  run.Near("total, IOPS", baa.total, 1200, 1e-3);
  double drf = 0;
  for (const double rate : DominantResourceRates(tiers, clients)) drf += rate;
  run.Near("total under DRF, IOPS", drf, 1193.4, .1);
  run.True("BAA keeps P1-P4", JudgeTierFairness(tiers, clients, baa.rates).all());
}

void RunTableThree(Run& run) {
  const std::vector<double> hits{.2, .4, .98, 1.0};
  const auto clients = ClientsOf(hits);
  NearAll(run, "fair share, IOPS", FairShares(HdAndSsd(160, 2200), clients),
          {50.0, 66.67, 561.2, 550.0}, .05);
  const Tiers measured = HdAndSsd(143.0, 2149.6);
  const BottleneckAllocation baa = SolveBottleneckAware(measured, clients);
  NearAll(run, "BAA, IOPS", baa.rates, {76.02, 101.36, 1068.29, 1046.93}, .1);
  const std::vector<double> on_hd{60.8, 60.8, 21.4, 0}, on_ssd{15.2, 40.4, 1047, 1047};
  for (size_t i = 0; i < 4; ++i) {
    const std::string client = ", client " + std::to_string(i + 1);
    run.Near("on the HD, IOPS" + client, baa.rates[i] * clients[i].use[0], on_hd[i], .3);
    run.Near("on the SSD, IOPS" + client, baa.rates[i] * clients[i].use[1], on_ssd[i], .3);
  }
  NearAll(run, "BAA at 160/2200, IOPS", SolveBottleneckAware(HdAndSsd(160, 2200), clients).rates,
          {86.37, 115.16, 1090.13, 1068.33}, .01);
  run.True("BAA keeps P1-P4", JudgeTierFairness(measured, clients, baa.rates).all());
  const TieredResult array = RunArray(run, measured, hits, baa.rates);
  NearParts(run, "array under BAA, IOPS", array.iops, {76.02, 101.36, 1068.29, 1046.93}, .04);
}

}  // namespace

void AddTieredExamples(std::vector<Experiment>* all) {
  all->push_back({"E21", "Two clients, HD 100 and SSD 500 IOPS: FQ, DRF, BAA",
                  "BAA example I, figure 2",
                  "Hit ratios .5 and .9. The numbers of the text by formula; the BAA division also "
                  "on a simulated array of two exponential devices, depth 128, +-4 %.",
                  RunExampleOne});
  all->push_back({"E22", "Filling both tiers can make envious", "BAA example II",
                  "Hit ratios .5, .5, .9. FQ and DRF as in the text; 1 : 1 : 10 fills both tiers "
                  "but is not free of envy (50 IOPS of the HD against 25), so BAA does less.",
                  RunExampleTwo});
  all->push_back({"E23", "Bottleneck sets, fair shares, envy bounds, program", "BAA examples III-V",
                  "Hit ratios .75, .5, .9, .95 on 200 and 1000 IOPS: every intermediate number.",
                  RunExamplesThreeToFive});
  all->push_back({"E29", "Four clients from .2 to 1.0", "BAA table 3",
                  "Fair shares at 160/2200 IOPS; the division at 143.0/2149.6, what the table's "
                  "columns sum to (the paper gives ranges: 140-160 and 2000-2200).",
                  RunTableThree});
}

}  // namespace weir::sim
