package node

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"io/fs"
	"os"
)

// The file of counts is all counts as they once were, and behind them what has changed since,
// in records: the length, a checksum, and what replica.Restore reads.

// maxCounts bounds what is read back; a larger file is not ours.
const maxCounts = 512 << 20

const countsHead = 8 // bytes before a record

func countsHeader(record []byte) []byte {
	head := binary.BigEndian.AppendUint32(nil, uint32(len(record)))
	return binary.BigEndian.AppendUint32(head, crc32.Checksum(record, castagnoli))
}

// SaveCounts stores all that the node counts. The old content stays until the new one is on disk.
func (d *DataDir) SaveCounts(all []byte) error {
	return d.replace(countsFile, countsHeader(all), all)
}

// AppendCounts stores what has changed since the last SaveCounts or AppendCounts. After an error
// nobody knows where the file ends: all is to be saved again.
func (d *DataDir) AppendCounts(news []byte) error {
	f, err := d.root.OpenFile(countsFile, os.O_WRONLY|os.O_APPEND, 0)
	if err == nil {
		_, err = f.Write(append(countsHeader(news), news...))
		if err == nil {
			err = f.Sync()
		}
		err = errors.Join(err, f.Close())
	}
	if err != nil {
		return fmt.Errorf("write %s: %w", countsFile, err)
	}
	return nil
}

// LoadCounts returns what is stored, oldest first, or nil when there is nothing. A last record that
// a crash has cut is left out, with all behind it.
func (d *DataDir) LoadCounts() (records [][]byte, err error) {
	f, err := d.root.Open(countsFile)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, maxCounts+1))
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", countsFile, err)
	}
	if len(b) > maxCounts {
		return nil, fmt.Errorf("%s is damaged", countsFile)
	}
	for len(b) >= countsHead {
		n, sum := binary.BigEndian.Uint32(b), binary.BigEndian.Uint32(b[4:])
		if b = b[countsHead:]; uint64(n) > uint64(len(b)) || crc32.Checksum(b[:n], castagnoli) != sum {
			break
		}
		records, b = append(records, b[:n:n]), b[n:]
	}
	if len(records) == 0 {
		return nil, fmt.Errorf("%s is damaged", countsFile)
	}
	return records, nil
}
