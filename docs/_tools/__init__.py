"""What builds the site: measured numbers, figures, generated pages, formulas and checks."""
