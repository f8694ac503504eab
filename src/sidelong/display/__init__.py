"""How results look to people: tables as text, HTML and LaTeX, figures, and drawings of graphs."""
