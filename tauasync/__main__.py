"""`python -m tauasync`."""

from tauasync.cli import main

if __name__ == "__main__":
    main()
