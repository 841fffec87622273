package hosts

import (
	"errors"
	"net/http"

	"slipway.dev/slipway/hardware/rootdisk"
	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/web/rest"
)

// HostDisks says what becomes of each disk of a host.
type HostDisks struct {
	Items   []HostDisk `json:"items"`
	Problem string     `json:"problem,omitempty" doc:"Why no disk can be chosen"`
	Hint    string     `json:"hint,omitempty"`
}

// HostDisk is a disk as the newest inspection found it.
type HostDisk struct {
	Disk   inventory.Disk `json:"disk"`
	IsRoot bool           `json:"isRoot" doc:"Operating systems are written to it"`
	IsKept bool           `json:"isKept" doc:"Never wiped and never chosen"`
	Reason string         `json:"reason,omitempty" doc:"Why it is, or is not"`
}

// addDisks registers what would become of the disks of a host.
func (s *Server) addDisks() {
	rest.Register(s.rest, rest.Operation{
		Method: http.MethodGet, Path: "/hosts/{host}/disks", ID: "list-disks", AtAny: true, Scope: rest.OfPools, Tag: "hosts",
		Summary: "List the disks of a host: which would be written to, and which are kept", Errors: []int{http.StatusNotFound},
		About: "As its newest inspection found them, and by what the host says of its root disk; a machine may ask for another.",
	},
		func(req *rest.Request, in *rest.HostRef) (*rest.One[HostDisks], error) {
			out := HostDisks{Items: []HostDisk{}}
			err := s.rest.OfHost(req, in.Host, func(tx inventory.Tx, h inventory.Host) error {
				i, err := tx.FindInspection(h.ID, 0)
				if inventory.IsKind(err, inventory.NotFound) {
					out.Problem, out.Hint = "it was never inspected", "slipway host inspect "+h.Name
					return nil
				}
				if err == nil {
					out = disksOf(h, i.Hardware.Disks)
				}
				return err
			})
			return &rest.One[HostDisks]{Body: out}, err
		})
}

// disksOf says what becomes of disks, as an installation would choose.
func disksOf(h inventory.Host, disks []inventory.Disk) HostDisks {
	out := HostDisks{Items: []HostDisk{}}
	var free []inventory.Disk
	for _, d := range disks {
		x := HostDisk{Disk: d}
		for _, keep := range h.KeepDisks {
			if !x.IsKept && keep.Matches(d) {
				x.IsKept, x.Reason = true, "kept: "+keep.String()
			}
		}
		if !x.IsKept {
			free = append(free, d)
		}
		out.Items = append(out.Items, x)
	}
	root, err := rootdisk.Choose(free, h.RootDisk, 0)
	if said, ok := errors.AsType[*inventory.Error](err); ok {
		out.Problem, out.Hint = said.Msg, said.Hint
		return out
	}
	for i := range out.Items {
		x := &out.Items[i]
		if x.IsKept {
			continue
		}
		x.IsRoot = x.Disk.Name == root.Name
		x.Reason = whyRoot(h.RootDisk, x)
	}
	return out
}

// whyRoot says why a disk is chosen or not.
func whyRoot(hint inventory.DiskHint, x *HostDisk) string {
	switch {
	case x.IsRoot && hint.IsZero():
		return "the smallest of the fastest kind"
	case x.IsRoot:
		return "asked for: " + hint.String()
	case x.Disk.IsReadOnly:
		return "read-only"
	case hint.IsZero() && (x.Disk.IsRemovable || x.Disk.Transport == "usb"):
		return "removable: only when it is named"
	case !hint.IsZero():
		return "not " + hint.String()
	}
	return "another is smaller, or faster"
}
