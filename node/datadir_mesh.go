package node

import (
	"fmt"

	"github.com/ropeline/ropeline/crdt"
	"github.com/ropeline/ropeline/node/bootstrap"
)

// meshFile is how the identity file says of which mesh the directory is. It stands with
// the id of the node, so that neither is lost or put back without the other.
type meshFile struct {
	ID         string   `json:"id"`
	Names      []string `json:"names,omitempty"`
	Minter     string   `json:"minter,omitempty"`
	MinterName string   `json:"minter_name,omitempty"`
	MinterSite string   `json:"minter_site,omitempty"`
	Minted     bool     `json:"minted,omitempty"` // of the minter: all named nodes have held this
}

func (m *meshFile) disk() (d bootstrap.Disk, err error) {
	if m == nil {
		return d, nil
	}
	d = bootstrap.Disk{Minted: m.Minted, Record: bootstrap.Record{Names: m.Names, MinterName: m.MinterName, MinterSite: m.MinterSite}}
	if d.Record.Mesh, err = bootstrap.ParseMeshID(m.ID); err != nil {
		return bootstrap.Disk{}, err
	}
	if d.Record.Minter, err = crdt.ParseNodeID(m.Minter); err != nil {
		return bootstrap.Disk{}, err
	}
	return d, nil
}

func meshFileOf(d bootstrap.Disk) *meshFile {
	r := d.Record
	if r.Mesh.IsZero() {
		return nil
	}
	return &meshFile{ID: r.Mesh.String(), Names: r.Names, Minter: nameOf(r.Minter), MinterName: r.MinterName, MinterSite: r.MinterSite, Minted: d.Minted}
}

// Mesh returns of which mesh the directory is.
func (d *DataDir) Mesh() bootstrap.Disk {
	d.writing.Lock()
	defer d.writing.Unlock()
	return d.mesh
}

// SetMesh has the directory be of a mesh, which it stays of. It is on disk when it returns.
func (d *DataDir) SetMesh(to bootstrap.Disk) error {
	d.writing.Lock()
	defer d.writing.Unlock()
	if was := d.mesh.Record.Mesh; !was.IsZero() && was != to.Record.Mesh {
		return fmt.Errorf("data directory %s is of mesh %s, and cannot become one of mesh %s", d.root.Name(), was, to.Record.Mesh)
	}
	before := d.mesh
	d.mesh = to
	if err := d.writeIdentity(d.self); err != nil {
		d.mesh = before
		return fmt.Errorf("data directory %s: %w", d.root.Name(), err)
	}
	return nil
}
