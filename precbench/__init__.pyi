"""The public names, for type checkers; `precbench` imports them when they are used."""

from precbench.advice.comparison import compare as compare
from precbench.advice.evaluation import evaluate as evaluate
from precbench.advice.refitting import refit as refit
from precbench.advice.table_description import profile as profile
from precbench.advice.training import fit as fit
from precbench.data import DATASETS as DATASETS
from precbench.data import load_dataset as load_dataset
from precbench.model.model import Model as Model
from precbench.model.scored_list import score as score
from precbench.ranking.losses import SURROGATES as SURROGATES
from precbench.ranking.metrics import METRICS as METRICS
from precbench.ranking.metrics import interval_at_k as interval_at_k
from precbench.ranking.scorers import precision_at_k_scorer as precision_at_k_scorer
from precbench.runner.session import run as run
from precbench.solvers import BBR as BBR
from precbench.solvers import FTRL as FTRL
from precbench.solvers import LCBR as LCBR
from precbench.solvers import MLP as MLP
from precbench.solvers import OAM as OAM
from precbench.solvers import PGD as PGD
from precbench.solvers import SOLVERS as SOLVERS
from precbench.solvers import SPAM as SPAM
from precbench.solvers import AdaOAM as AdaOAM
from precbench.solvers import CatBoost as CatBoost
from precbench.solvers import CuttingPlane as CuttingPlane
from precbench.solvers import Ensemble as Ensemble
from precbench.solvers import ExtraTrees as ExtraTrees
from precbench.solvers import HistGradientBoosting as HistGradientBoosting
from precbench.solvers import IRPush as IRPush
from precbench.solvers import LambdaRank as LambdaRank
from precbench.solvers import LightGBM as LightGBM
from precbench.solvers import LinearSVMRanker as LinearSVMRanker
from precbench.solvers import LogisticRegressionRanker as LogisticRegressionRanker
from precbench.solvers import NoSkill as NoSkill
from precbench.solvers import OnePMB as OnePMB
from precbench.solvers import PerceptronAtK as PerceptronAtK
from precbench.solvers import PNormPush as PNormPush
from precbench.solvers import ProjectedSubgradient as ProjectedSubgradient
from precbench.solvers import RandomForest as RandomForest
from precbench.solvers import RankBoost as RankBoost
from precbench.solvers import SGDAtK as SGDAtK
from precbench.solvers import TopPush as TopPush
from precbench.solvers import TwoPMB as TwoPMB
from precbench.solvers import XGBoost as XGBoost

__version__: str
