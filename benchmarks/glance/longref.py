"""Reference regrets of the catalogue on the long suites, through the package: python longref.py tune|report"""
import sys
sys.path.insert(0, "..")
import numpy as np, suites
from sidelong.simulation.scoreboard import compete
if __name__ == "__main__":
    which = sys.argv[1]
    inst = list(suites.tune())[1:-6:5] if which == "tune" else list(suites.report())[:-1]
    keep = [c for c in suites.CONTESTANTS if c.name not in ("uniform", "alphasample", "exp3-dom", "exp3", "exp3++", "ito-2022", "hedge")]
    seed = suites.TUNE_SEED if which == "tune" else suites.REPORT_SEED
    b = compete(keep, inst, 4 if which == "tune" else 6, seed, processes=1)
    np.savez(f"longref_{which}.npz", contestants=np.array(b.contestants), instances=np.array(b.instances), regret=b.regret, arms=b.arms, error=b.error)
