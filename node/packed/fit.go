package packed

import "maps"

// Fit returns a map, or a copy of it in less memory once less than half is left of what it held at most: Go's maps keep
// what they needed then. most is how many that was, for the caller to keep; 0 at first. It is to be called after
// entries have gone, and from time to time while they come.
func Fit[M ~map[K]V, K comparable, V any](m M, most *int) M {
	const least = 64 // smaller ones take little
	if *most = max(*most, len(m)); len(m) >= *most/2 || *most < least {
		return m
	}
	*most = len(m)
	if m == nil {
		return nil
	}
	fits := make(M, len(m))
	maps.Copy(fits, m)
	return fits
}
