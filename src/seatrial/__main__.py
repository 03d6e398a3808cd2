"""`python -m seatrial`."""

from seatrial.cli.entry import main

if __name__ == "__main__":
    main()
