package ledger

// appliedAt returns the last change that the gate has when the ledger takes
// change v: with the ledger as the gate that one, else the one before.
func (l *Ledger) appliedAt(v int64) int64 {
	if l.remote() {
		return v - 1
	}
	return v
}
