"""Tools that build the site: measured numbers, figures, generated pages, formulas and checks."""
