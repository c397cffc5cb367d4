"""Books rendered to speech, one at a time: a real program on Line Clear's public names only."""

__version__ = "0.1.0"
