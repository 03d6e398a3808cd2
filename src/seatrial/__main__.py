"""`python -m seatrial`."""

import sys

if __name__ == "__main__" and not sys.flags.safe_path and not __file__.startswith(f"{sys.path[0]}/"):
    del sys.path[0]  # the working directory: whoever owns it could replace any module that is loaded from here on

from seatrial.cli.entry import main

if __name__ == "__main__":
    main()
