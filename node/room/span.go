package room

import "time"

// granules is how many steps a bucket has inside its own site: fine enough for
// order inside the one bucket that is let in by parts, few enough to replicate.
const granules = 12

// BucketOf returns the start of the bucket that arrival falls into, in Unix
// seconds. A span below a second counts as one second.
func BucketOf(arrival time.Time, span time.Duration) int64 {
	return bucketStart(arrival.Unix(), seconds(span))
}

// GranuleOf returns the start of the granule that arrival falls into, in Unix
// seconds. Granules are laid out from the start of their bucket, so that none
// reaches into two buckets; the last one of a bucket may be short.
func GranuleOf(arrival time.Time, span time.Duration) int64 {
	at, width := arrival.Unix(), seconds(span)
	start := bucketStart(at, width)
	step := granule(width)
	return start + (at-start)/step*step
}

func seconds(span time.Duration) int64 { return max(1, int64(span/time.Second)) }

// granule returns how many seconds a granule of a bucket of width seconds has.
func granule(width int64) int64 { return max(1, width/granules) }

func bucketStart(at, width int64) int64 {
	start := at / width * width
	if start > at {
		start -= width // times before 1970 round down too
	}
	return start
}

// granuleEnd returns where the granule that holds at ends, in Unix seconds.
func granuleEnd(at, width int64) int64 {
	start := bucketStart(at, width)
	step := granule(width)
	return min(start+((at-start)/step+1)*step, start+width)
}
