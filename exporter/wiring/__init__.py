"""The concrete parts made from the settings; only `app.py` calls these modules."""
