"""Studies of many contingencies or many trainings."""
