"""The map between two shapes, to look at: a report in one HTML file, pictures, a local app."""

from ltenet.viewer.report import Report, notebook_html, view

__all__ = ["Report", "notebook_html", "view"]
