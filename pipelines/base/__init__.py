"""What every other package rests on: errors, checked paths, and parsing of files that others wrote."""
