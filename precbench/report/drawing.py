"""What processes that draw figures import, and nothing else."""

from matplotlib.backends import backend_agg, backend_pdf, backend_svg

from precbench.report import figures

__all__ = ["backend_agg", "backend_pdf", "backend_svg", "figures"]
