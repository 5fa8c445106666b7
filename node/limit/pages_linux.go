package limit

import (
	"runtime"
	"unsafe"

	"golang.org/x/sys/unix"
)

// minReserved is from how many bytes on memory is asked of the kernel. Less of it is not worth it to keep it
// from the collector, which lets garbage grow as large as what it knows of.
const minReserved = 4 << 20

// reserve returns so many sets of which none takes memory before it is used; nil: there is none to be had.
func reserve(sets int) *area {
	bytes := sets * int(unsafe.Sizeof(set{}))
	if bytes < minReserved {
		return nil
	}
	all, err := unix.Mmap(-1, 0, bytes, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_ANON|unix.MAP_PRIVATE|unix.MAP_NORESERVE)
	if err != nil {
		return nil
	}
	// In large pages, the first keys would take most of it.
	_ = unix.Madvise(all, unix.MADV_NOHUGEPAGE)
	a := &area{unsafe.Slice((*set)(unsafe.Pointer(&all[0])), sets)}
	runtime.AddCleanup(a, func(all []byte) { _ = unix.Munmap(all) }, all)
	return a
}

// inHugePages has the memory of a part, which is used up, be in pages of some megabytes, where the kernel has
// them. A key of millions is in no cache; in small pages, where its page is
// is in none either, and finding that takes as long as reading the key.
func (a *area) inHugePages(part []set) {
	const page = 2 << 20
	begin, end := uintptr(unsafe.Pointer(&a.sets[0])), uintptr(unsafe.Pointer(unsafe.SliceData(part)))
	size := uintptr(len(a.sets)) * unsafe.Sizeof(set{})
	from := max(end&^(page-1), (begin+page-1)&^(page-1)) - begin
	to := min((end-begin+uintptr(len(part))*unsafe.Sizeof(set{})+begin+page-1)&^(page-1), (begin+size)&^(page-1)) - begin
	if from >= to || to > size {
		return
	}
	all := unsafe.Slice((*byte)(unsafe.Pointer(&a.sets[0])), size)[from:to]
	// The kernel's no means that there are no such pages: all goes on, slower.
	_ = unix.Madvise(all, unix.MADV_HUGEPAGE)
	_ = unix.Madvise(all, unix.MADV_COLLAPSE)
}
