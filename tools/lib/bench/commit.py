"""The programs of another commit: built once in a folder of their own, and kept for the next comparison."""
import fcntl
import os
import shutil
import subprocess

from .host import BenchError, run, say

ROOT = "/var/tmp/weir-against"
# What a system consists of. Load generators and the passthrough are always of the tree that measures.
TARGETS = ("weirfs", "weir-osd", "weir-mds", "weir-dev", "osdctl")
PATIENCE_S = 3600
NICE = 15  # Whoever else works on the machine goes first.


def resolve(repo, name):
    """The hash of a commit, whatever it is called."""
    try:
        return run("git", "-C", repo, "rev-parse", "--verify", "--quiet", f"{name}^{{commit}}").strip()
    except BenchError:
        raise BenchError(f"'{name}' is no commit of {repo}; a shallow clone has only the last ones: 'git fetch --unshallow'") from None


def folder(commit, root=ROOT):
    return os.path.join(root, commit[:12])


def programs(repo, name, root=ROOT):
    """The directory with the programs of a commit, which are built now unless they were before."""
    commit = resolve(repo, name)
    place = folder(commit, root)
    os.makedirs(place, exist_ok=True)
    with open(os.path.join(root, os.path.basename(place) + ".lock"), "w", encoding="ascii") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # Two comparisons at once build it once.
        done = os.path.join(place, "built")
        if not os.path.exists(done):
            say(f"bench: building {commit[:12]} in {place} (minutes; kept until --clean-against)")
            unpack(repo, commit, place)
            build(place)
            with open(done, "w", encoding="ascii"):
                pass
    return os.path.join(place, "build", "release", "bin")


def unpack(repo, commit, place):
    """The commit's files, without a repository: nothing of it is left in the one that we were asked in."""
    with subprocess.Popen(["git", "-C", repo, "archive", commit], stdout=subprocess.PIPE) as archive:
        tar = subprocess.run(["tar", "-x", "-C", place], stdin=archive.stdout, capture_output=True, text=True, check=False)
    if archive.returncode or tar.returncode:
        raise BenchError(f"cannot unpack {commit} into {place}: {tar.stderr.strip() or 'git archive failed'}")


def build(place):
    # ccache, where it is in use, then knows files by their names below `place`.
    env = {**os.environ, "CCACHE_BASEDIR": place, "CCACHE_NOHASHDIR": "1"}
    log = os.path.join(place, "build.log")
    targets = [word for target in TARGETS for word in ("--target", target)]
    with open(log, "w", encoding="utf-8") as out:
        for step in (["cmake", "--preset", "release"],
                     ["cmake", "--build", "--preset", "release", "-j", str(os.cpu_count()), *targets]):
            try:
                done = subprocess.run(["nice", "-n", str(NICE), *step], cwd=place, env=env, stdin=subprocess.DEVNULL,
                                      stdout=out, stderr=out, timeout=PATIENCE_S, check=False)
            except subprocess.TimeoutExpired:
                raise BenchError(f"'{step[0]}' in {place} did not end within {PATIENCE_S} s") from None
            if done.returncode:
                raise BenchError(f"'{' '.join(step[:3])}' in {place} ended with {done.returncode}: see {log}")


def clean(root=ROOT):
    """Removes every commit that was built."""
    shutil.rmtree(root, ignore_errors=True)
