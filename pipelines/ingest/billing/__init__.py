"""Reads AWS billing exports (legacy CUR, CUR 2.0, FOCUS) into the raw bill."""
