"""How results look to people: tables as text, HTML and LaTeX, and figures for a page, a notebook and a paper."""
