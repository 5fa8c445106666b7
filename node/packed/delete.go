package packed

import "maps"

// Delete deletes a key, and gives memory back each time half of what is left then is gone: Go's maps keep what they needed
// when they were largest. It takes time for a copy of what is left, once for as many deletions.
//
// A map that is gone through meanwhile yields what it had when that began.
func Delete[M ~map[K]V, K comparable, V any](m *M, key K) {
	const least = 8 // smaller ones take as much
	before := len(*m)
	delete(*m, key)
	if n := len(*m); n == before || n < least || n&(n-1) != 0 {
		return
	}
	fits := make(M, len(*m))
	maps.Copy(fits, *m)
	*m = fits
}
