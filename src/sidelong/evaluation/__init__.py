"""What a log says, without a server: what other arms, or another distribution, would have cost in the same rounds."""

from sidelong.evaluation.certificates import Certificate, certificate
from sidelong.evaluation.decision_log import DecisionLog, read_log
from sidelong.evaluation.offpolicy import CostEstimates, evaluate_arms, evaluate_distribution
from sidelong.evaluation.regret import Regret, regret
from sidelong.evaluation.sample_ratio import sample_ratio
from sidelong.evaluation.turning import Health

__all__ = [
    "Certificate",
    "CostEstimates",
    "DecisionLog",
    "Health",
    "Regret",
    "certificate",
    "evaluate_arms",
    "evaluate_distribution",
    "read_log",
    "regret",
    "sample_ratio",
]
