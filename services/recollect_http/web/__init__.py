"""What pages for people share in every process: templates of components, style sheets, forms and cookies.

`rendering` makes an environment of templates: those of a package, and the components and frames that all share.
`styles` serves the files that pages load, `forms` proves that a form was sent from our page, and `cookies` names what a
browser keeps. `frame.html` is a page with a sidebar; `base.html` is one that stands alone.
"""
