"""`python -m distributary`: the same command as `distributary`."""

from distributary.cli import main

if __name__ == "__main__":
    main()
