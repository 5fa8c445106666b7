// Package must is for what tests set up, and cannot do without.
package must

// Do returns v, or panics.
func Do[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}
