"""The page in a real Chromium. A package, so that the browser ends with the last of its tests."""
