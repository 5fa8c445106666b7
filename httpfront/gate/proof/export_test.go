package proof

// Signatures returns how many tokens were signed since the last rotation, for tests.
func Signatures(s *Signer) uint64 { return s.now.Load().signatures.Load() }
