"""What people read: tables in a terminal, text formats, plots, and a self-contained HTML report."""
