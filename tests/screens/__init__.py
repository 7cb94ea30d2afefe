"""Pictures of the screen: made by hand, compared with what they were."""
