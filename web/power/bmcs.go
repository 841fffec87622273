package power

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/provision/foresight"
	"slipway.dev/slipway/web/audit"
	"slipway.dev/slipway/web/rest"
	"slipway.dev/slipway/web/wire"
)

// SetBMC says how a host is powered.
type SetBMC struct {
	wire.HostBMC
	Password string `json:"password,omitempty" doc:"Sealed, and never told again; when absent, the one that is stored stays if driver, address and user do" writeOnly:"true" maxLength:"256"`
}

// Hidden stands for a value that Slipway does not show; sent back, it leaves the value as it is.
const Hidden = "(hidden)"

// isSecretOption reports whether an option of a BMC may hold a secret.
func isSecretOption(key string) bool { return inventory.IsSecretOption(key) }

// Shown returns a BMC without its secrets.
func Shown(host string, b inventory.BMC) wire.HostBMC {
	b.Sealed, b.Options = nil, maps.Clone(b.Options)
	for k := range b.Options {
		if isSecretOption(k) {
			b.Options[k] = Hidden
		}
	}
	return wire.HostBMC{Host: host, BMC: b}
}

type putBMCInput struct {
	IfMatch string `header:"If-Match" doc:"Fail with 412 unless this is the version stored; without it the last writer wins" maxLength:"64"`
	rest.HostRef
	Body SetBMC
}

// addBMCs registers the operations on the ways to power hosts; addBMCVerbs adds what is done with them.
func (s *Server) addBMCs() {
	rest.Register(s.rest, rest.Operation{Method: http.MethodGet, Path: "/bmcs", ID: "list-bmcs", Scope: rest.OfPools, Tag: "bmcs", Summary: "List how hosts are powered"},
		func(req *rest.Request, in *rest.Page) (out *rest.Listed[wire.HostBMC], err error) {
			err = s.rest.Store.Read(req, func(tx inventory.Tx) error {
				rows, err := tx.ListBMCs(in.More())
				if err != nil {
					return err
				}
				page := rest.PageOf(rows, in.Limit, func(b inventory.BMC) string { return string(b.HostID) })
				out = &rest.Listed[wire.HostBMC]{Body: rest.List[wire.HostBMC]{Items: []wire.HostBMC{}, Next: page.Body.Next}}
				for _, b := range page.Body.Items {
					h, err := tx.FindHost(b.HostID)
					if err != nil {
						return err
					}
					out.Body.Items = append(out.Body.Items, Shown(h.Name, b))
				}
				return nil
			})
			return out, err
		})
	rest.Register(s.rest, rest.Operation{
		Method: http.MethodGet, Path: "/hosts/{host}/bmc", ID: "get-bmc", Scope: rest.OfPools, Tag: "bmcs",
		Summary: "Show the controller of a host",
		Errors:  []int{http.StatusNotFound},
		About: "The last answer of its controller. Its serial console is at /hosts/{host}/bmc/console, for HTTP/1.1 requests with " +
			"Connection: Upgrade and Upgrade: " + ConsoleProtocol + ": after the status 101 the connection is the console.",
	},
		func(req *rest.Request, in *rest.HostRef) (*rest.One[wire.HostBMC], error) {
			h, b, err := s.readBMC(req, in.Host)
			return &rest.One[wire.HostBMC]{ETag: rest.ETag(b.Version), Body: Shown(h.Name, b)}, err
		})
	rest.Register(s.rest, rest.Operation{
		Method: http.MethodPut, Path: "/hosts/{host}/bmc", ID: "put-bmc", Needs: inventory.Admin, Scope: rest.OfPools, Tag: "bmcs",
		Summary: "Set the controller of a host",
		Errors:  []int{http.StatusNotFound, http.StatusConflict, http.StatusPreconditionFailed},
	}, s.putBMC)
	rest.Register(s.rest, rest.Operation{
		Method: http.MethodDelete, Path: "/hosts/{host}/bmc", ID: "delete-bmc", Needs: inventory.Admin, Scope: rest.OfPools, Tag: "bmcs", Dry: true, Status: http.StatusNoContent,
		Summary: "Delete the controller of a host", About: "From then on, a person has to switch its power by hand.",
		Errors: []int{http.StatusNotFound, http.StatusPreconditionFailed},
	}, s.deleteBMC)
}

// findBMC finds how a host is powered.
func findBMC(tx inventory.Tx, ref string) (inventory.Host, inventory.BMC, error) {
	h, err := rest.FindHost(tx, ref)
	if err != nil {
		return h, inventory.BMC{}, err
	}
	b, err := tx.FindBMC(h.ID)
	if inventory.IsKind(err, inventory.NotFound) {
		err = inventory.Errorf(inventory.NotFound, "host %s has no controller", h.Name).
			WithHint("name it with: slipway host bmc %s --driver redfish --address https://...", h.Name)
	}
	return h, b, err
}

func (s *Server) readBMC(req *rest.Request, ref string) (h inventory.Host, b inventory.BMC, err error) {
	err = s.rest.Store.Read(req, func(tx inventory.Tx) error {
		h, b, err = findBMC(tx, ref)
		return err
	})
	return h, b, err
}

func (s *Server) putBMC(req *rest.Request, in *putBMCInput) (*rest.One[wire.HostBMC], error) {
	var (
		h   inventory.Host
		old inventory.BMC
	)
	err := s.rest.Store.Read(req, func(tx inventory.Tx) (err error) {
		if h, err = rest.FindHost(tx, in.Host); err != nil {
			return err
		}
		old, err = tx.FindBMC(h.ID)
		if inventory.IsKind(err, inventory.NotFound) && in.IfMatch == "" {
			return nil
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	if err := (rest.WriteOptions{IfMatch: in.IfMatch}).Check("the BMC of host", h.Name, old.Version); err != nil {
		return nil, err
	}
	b, err := wantedBMC(old, in.Body.BMC)
	if err != nil {
		return nil, err
	}
	b.HostID = h.ID
	if old.Version == 0 || in.Body.Password != "" || len(rest.Compare(old, b)) > 0 {
		req.Trail.Lastly(func(tx inventory.Tx) error {
			b, err := tx.FindBMC(h.ID)
			if err == nil {
				bmcEdited(req, h, old, b, in.Body.Password != "")
			}
			return err
		})
		if b, err = s.cfg.Engine.SaveBMC(req, b, in.Body.Password, s.rest.Asker(req)); err != nil {
			return nil, err
		}
	}
	return &rest.One[wire.HostBMC]{ETag: rest.ETag(b.Version), Body: Shown(h.Name, b)}, nil
}

// wantedBMC is what is stored with all that an admin says of it taken from in.
func wantedBMC(old, in inventory.BMC) (inventory.BMC, error) {
	b := old
	isSame := old.Driver == in.Driver && old.Address == in.Address
	if !isSame { // what another controller said is not true of this one
		b = inventory.BMC{CreatedAt: old.CreatedAt, UpdatedAt: old.UpdatedAt, Version: old.Version}
	}
	b.Driver, b.Address, b.Username, b.System = in.Driver, in.Address, in.Username, in.System
	b.InsecureSkipVerify, b.Fingerprint, b.MAC, b.Options = in.InsecureSkipVerify, in.Fingerprint, in.MAC, maps.Clone(in.Options)
	if m, err := inventory.ParseMAC(string(in.MAC)); err == nil {
		b.MAC = m
	}
	for k, v := range b.Options {
		if v != Hidden || !isSecretOption(k) {
			continue
		}
		stored, ok := old.Options[k]
		if !ok || !isSame {
			return b, inventory.Errorf(inventory.Invalid, "option %s of the BMC has no value", inventory.Clean(k, 80)).
				WithHint("%s stands for the one that is stored, for the same driver and address", Hidden)
		}
		b.Options[k] = stored
	}
	return b, nil
}

type deleteBMCInput struct {
	rest.WriteOptions
	rest.HostRef
}

func (s *Server) deleteBMC(req *rest.Request, in *deleteBMCInput) (*rest.Written, error) {
	var told wire.HostBMC
	err := s.rest.Write(req, in.DryRun, func(tx inventory.Tx) error {
		h, b, err := findBMC(tx, in.Host)
		if err != nil {
			return err
		}
		told = Shown(h.Name, b)
		if err := in.Check("the BMC of host", h.Name, b.Version); err != nil {
			return err
		}
		if err := tx.DeleteBMC(h.ID); err != nil {
			return err
		}
		bmcEdited(req, h, b, inventory.BMC{}, false)
		return tx.AddEvent(&inventory.Event{
			At: s.rest.Now(), Kind: inventory.EventHostChanged, HostID: h.ID, Detail: "the way to power it was forgotten by " + req.By(),
		})
	})
	if err != nil || !in.DryRun {
		return &rest.Written{Status: http.StatusNoContent}, err
	}
	w := &rest.Written{Status: http.StatusOK, Body: rest.Diff{IsDryRun: true, Changes: rest.Compare(told, nil)}}
	return w.Does(foresight.Delete(foresight.Thing{Noun: "bmc", Name: "host " + told.Host})), nil
}

// A scan takes scanFor at most, and finds at most scanMax controllers: both kinds at each address.
const (
	ScanFor = 10 * time.Minute
	scanMax = 2 * 65_536
)

type scanInput struct {
	Body struct {
		Range   string                `json:"range" doc:"Such as 10.0.0.0/24 or 10.0.0.10-10.0.0.50; at most 65,536 addresses" minLength:"1" maxLength:"100"`
		Drivers []inventory.BMCDriver `json:"drivers,omitempty" doc:"What to look for; both when empty" enum:"redfish,ipmi" maxItems:"2"`
	}
}

// addScans registers the search for controllers.
func (s *Server) addScans() {
	rest.Register(s.rest, rest.Operation{
		Method: http.MethodPost, Path: "/scans", ID: "scan", Needs: inventory.Admin, Tag: "bmcs", IsLong: true,
		Summary: "Look for controllers in a range of addresses", Errors: []int{http.StatusConflict},
		About: "Logs in nowhere. It takes up to ten minutes, and one runs at a time.",
	}, s.scan)
}

func (s *Server) scan(req *rest.Request, in *scanInput) (*rest.One[rest.List[wire.FoundBMC]], error) {
	if s.cfg.Scan == nil {
		return nil, inventory.Errorf(inventory.Unavailable, "this server looks for no controllers")
	}
	if !s.scanning.TryLock() {
		return nil, inventory.Errorf(inventory.Conflict, "another scan is under way").WithHint("try it again when that has ended, which takes at most %s", ScanFor)
	}
	defer s.scanning.Unlock()
	ctx, cancel := context.WithTimeout(req, ScanFor)
	defer cancel()
	defer context.AfterFunc(s.cfg.Life, cancel)()
	var drivers []string
	for _, d := range in.Body.Drivers {
		drivers = append(drivers, string(d))
	}
	found, err := s.cfg.Scan(ctx, in.Body.Range, drivers)
	if err != nil {
		return nil, err
	}
	found = append([]wire.FoundBMC{}, found[:min(len(found), scanMax)]...)
	slices.SortStableFunc(found, func(a, b wire.FoundBMC) int { return strings.Compare(a.Address, b.Address) })
	err = s.rest.Store.Read(req.Detached(), func(tx inventory.Tx) error { return nameKnown(tx, found) })
	return &rest.One[rest.List[wire.FoundBMC]]{Body: rest.List[wire.FoundBMC]{Items: found}}, err
}

// nameKnown names the hosts whose controllers were found.
func nameKnown(tx inventory.Tx, found []wire.FoundBMC) error {
	known, err := tx.ListBMCs(inventory.Page{})
	if err != nil {
		return err
	}
	byAddress := map[string]inventory.HostID{}
	for _, b := range known {
		byAddress[strings.TrimSuffix(b.Address, "/")] = b.HostID
	}
	for i := range found {
		id, ok := byAddress[strings.TrimSuffix(found[i].Address, "/")]
		if !ok {
			continue
		}
		h, err := tx.FindHost(id)
		if err != nil {
			return err
		}
		found[i].Host = h.Name
	}
	return nil
}

// bmcEdited notes an edit of the way to power a host; version 0 is none. What is sealed or hidden cannot be brought back.
func bmcEdited(req *rest.Request, h inventory.Host, old, b inventory.BMC, hasPassword bool) {
	change, version := inventory.AuditUpdate, b.Version
	var before, after any
	if old.Version > 0 {
		before = Shown(h.Name, old)
	} else {
		change = inventory.AuditCreate
	}
	if b.Version > 0 {
		after = Shown(h.Name, b)
	} else {
		change = inventory.AuditDelete
	}
	rest.Edited(req, "bmc", h.Name, change, before, after, version)
	t := req.Trail
	t.Concern(h.ID)
	if hasPassword {
		t.Say("password set")
	}
	isOther := old.Driver != b.Driver || old.Address != b.Address || old.Username != b.Username
	switch {
	case change == inventory.AuditCreate:
	case hasPassword, len(old.Sealed) > 0 && isOther:
		t.Fix("the password that it had is not kept")
	case hasSecretOption(old, b):
		t.Fix("the option that it had may be a secret and is not kept")
	}
}

// hasSecretOption reports whether a hidden option of old is another in b, or gone.
func hasSecretOption(old, b inventory.BMC) bool {
	for k, v := range old.Options {
		if now, ok := b.Options[k]; isSecretOption(k) && (!ok || now != v || old.Driver != b.Driver || old.Address != b.Address) {
			return true
		}
	}
	return false
}

func (in *scanInput) Asked() string { return in.Body.Range }

// ConsoleProtocol is what a request for a serial console upgrades to: after the status 101 the connection carries what
// the console says and what is typed, as they are. The protocol's name is the whole agreement.
const ConsoleProtocol = "slipway-console"

// undoBMC takes an edit of a controller back.
func (s *Server) undoBMC(req *rest.Request, a inventory.Audit, isDryRun bool) (*rest.Written, error) {
	ref := rest.HostRef{Host: string(a.HostID)}
	h, b, err := s.readBMC(req, ref.Host)
	if a.Change == inventory.AuditDelete {
		if err == nil {
			return nil, rest.ChangedSince(a, "")
		}
		h, err = s.rest.ReadHost(req, ref.Host)
	}
	if err != nil {
		return nil, err
	}
	is := Shown(h.Name, b)
	if a.Change == inventory.AuditCreate {
		if _, err := audit.Reverted(a, is, s.cfg.Moving); err != nil {
			return nil, err
		}
		return s.deleteBMC(req, &deleteBMCInput{WriteOptions: rest.WriteOptions{DryRun: isDryRun, IfMatch: rest.ETag(b.Version)}, HostRef: ref})
	}
	var body wire.HostBMC
	if a.Change == inventory.AuditDelete {
		if err := json.Unmarshal(a.Before, &body); err != nil {
			return nil, fmt.Errorf("decode entry %d of the audit: %w", a.ID, err)
		}
	} else if body, err = audit.Reverted(a, is, s.cfg.Moving); err != nil {
		return nil, err
	}
	if isDryRun {
		return &rest.Written{Status: http.StatusOK, Body: rest.Diff{IsDryRun: true, Changes: rest.Compare(is, body), Result: body}}, nil
	}
	out, err := s.putBMC(req, &putBMCInput{IfMatch: rest.ETag(b.Version), HostRef: ref, Body: SetBMC{HostBMC: body}})
	if err != nil {
		return nil, err
	}
	return &rest.Written{Status: http.StatusOK, ETag: out.ETag, Body: out.Body}, nil
}
