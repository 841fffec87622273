package hosts

import (
	"errors"
	"net/http"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/provision/foresight"
	"slipway.dev/slipway/provision/ledger"
	"slipway.dev/slipway/provision/strangers"
	"slipway.dev/slipway/web/rest"
	"slipway.dev/slipway/web/wire"
)

type bulkInput struct {
	DryRun bool `query:"dryRun" doc:"Try it on each host alone and undo it: say which would be acted on, and why the others would not"`
	Body   wire.BulkRequest
}

func (in *bulkInput) Asked() string {
	which := strings.Join(in.Body.Hosts, " ")
	if in.Body.Strangers {
		which = "strangers"
	}
	if in.Body.Selector != "" {
		which = "selector " + in.Body.Selector
	}
	return in.Body.Verb + ": " + which
}

// addBulk registers the one operation that does something to many hosts.
func (s *Server) addBulk() {
	rest.Register(s.rest, rest.Operation{
		Method: http.MethodPost, Path: "/hosts/bulk", ID: "bulk-hosts", Tag: "hosts", Scope: rest.OfPools,
		Summary: "Do something to many hosts",
		About: "Each host by itself: one that cannot be acted on is skipped, with the reason, and does not hold up the others. With dryRun it " +
			"says that of every host and changes nothing.",
		Errors: []int{http.StatusNotFound, http.StatusForbidden}, IsLong: true, Body: 4 << 20,
	}, s.bulk)
}

// bulkAtOnce is how many hosts are acted on side by side: their commits share the disk's time.
const bulkAtOnce = 32

func (s *Server) bulk(req *rest.Request, in *bulkInput) (*rest.One[wire.BulkResult], error) {
	if err := checkBulk(&in.Body); err != nil {
		return nil, err
	}
	items, hosts, err := s.bulkHosts(req, in.Body)
	if err != nil {
		return nil, err
	}
	var (
		g      errgroup.Group
		once   sync.Once
		broken error
	)
	g.SetLimit(bulkAtOnce)
	for i := range items {
		if items[i].Reason != "" {
			continue
		}
		g.Go(func() error {
			does, err := s.bulkOne(req, in, &hosts[i])
			var e *inventory.Error
			switch {
			case err == nil:
				items[i].Acts, items[i].Does = true, does
			case errors.As(err, &e) && (isSaid(err) || e.Kind == inventory.Invalid):
				items[i].Reason, items[i].Hint = e.Msg, e.Hint
				req.Named.Add(e.Refs...)
			default:
				once.Do(func() { broken = err })
				items[i].Reason = "not done: the server met a fault"
			}
			return nil
		})
	}
	_ = g.Wait() // none returns an error
	out := wire.BulkResult{IsDryRun: in.DryRun, Items: items}
	for _, i := range items {
		if i.Acts {
			out.ActsN++
		}
	}
	if out.SkipsN = len(items) - out.ActsN; broken != nil && out.ActsN == 0 {
		return nil, broken
	}
	if broken != nil {
		s.rest.Log.Error("bulk: some hosts not done", "verb", in.Body.Verb, "err", broken)
	}
	return &rest.One[wire.BulkResult]{Body: out}, nil
}

// checkBulk refuses what fits no host.
func checkBulk(r *wire.BulkRequest) error {
	missing := func(field string) error {
		return inventory.Errorf(inventory.Invalid, "%s needs %s", r.Verb, field).WithHint("give %s in the body", field)
	}
	switch {
	case r.Strangers && (r.Verb != "delete" || len(r.Hosts) > 0 || r.Selector != ""):
		return inventory.Errorf(inventory.Invalid, "strangers can only be deleted, and are not named").WithHint("give strangers with the verb delete, and neither hosts nor a selector")
	case r.Strangers:
	case (len(r.Hosts) > 0) == (r.Selector != ""):
		return inventory.Errorf(inventory.Invalid, "say which hosts, in one way").WithHint("give hosts or a selector")
	case r.Verb == "power" && r.Action == "":
		return missing("action")
	case r.Verb == "set" && r.Set == nil:
		return missing("set")
	case r.Verb == "set" && (r.Set.Name != nil || r.Set.MACs != nil || r.Set.UUID != nil):
		return inventory.Errorf(inventory.Invalid, "a name, MAC or UUID belongs to one host").WithHint("change it on that host: slipway host set")
	}
	if r.On == nil {
		switch r.Verb {
		case "maintain", "protect", "cordon", "retain", "adopt", "locate":
			return missing("on")
		}
	}
	return nil
}

// bulkHosts finds the hosts that are asked for. What is none stands among the items with the reason; a host that is named
// twice is there once.
func (s *Server) bulkHosts(req *rest.Request, r wire.BulkRequest) (items []wire.BulkItem, hosts []inventory.Host, err error) {
	err = s.rest.Store.Read(req, func(tx inventory.Tx) error {
		items, hosts = []wire.BulkItem{}, nil
		add := func(h inventory.Host) {
			items, hosts = append(items, wire.BulkItem{Host: h.Name, ID: h.ID}), append(hosts, h)
		}
		if r.Strangers {
			all, err := tx.ListHosts(inventory.HostFilter{State: inventory.Discovered}, inventory.Page{})
			for i := range all {
				if strangers.IsUntouchedStranger(&all[i]) && s.rest.Now().Sub(all[i].LastSeenAt) >= time.Duration(r.SilentFor) {
					add(all[i])
				}
			}
			return err
		}
		if r.Selector != "" {
			sel, err := inventory.ParseSelector(r.Selector)
			if err != nil {
				return err
			}
			all, err := tx.ListHosts(inventory.HostFilter{}, inventory.Page{})
			for i := range all {
				if sel.Matches(&all[i]) {
					add(all[i])
				}
			}
			return err
		}
		seen := map[inventory.HostID]bool{}
		for _, ref := range r.Hosts {
			h, err := rest.FindHost(tx, ref)
			var e *inventory.Error
			switch {
			case errors.As(err, &e) && (e.Kind == inventory.NotFound || e.Kind == inventory.Forbidden):
				items, hosts = append(items, wire.BulkItem{Host: inventory.Clean(ref, 80), Reason: e.Msg, Hint: e.Hint}), append(hosts, h)
			case err != nil:
				return err
			case !seen[h.ID]:
				seen[h.ID] = true
				add(h)
			}
		}
		return nil
	})
	return items, hosts, err
}

// bulkOne acts on one host, with an entry in the audit of its own. Of a dry run it says what would happen.
func (s *Server) bulkOne(req *rest.Request, in *bulkInput, h *inventory.Host) (does string, err error) {
	if in.DryRun {
		var f foresight.Facts
		err = s.actOn(req, ledger.Asker{By: req.By(), DryRun: true, Foresee: func(seen foresight.Facts) { f = seen }}, in, h)
		r := &in.Body
		f.Verb, f.On, f.Action, f.Mode, f.Profile = r.Verb, r.On != nil && *r.On, string(r.Action), r.Mode, r.Profile
		return foresight.Say(f), err
	}
	row := req.Trail.Entry()
	row.Noun, row.Name, row.HostID, row.Detail = "host", h.Name, h.ID, in.Body.Verb
	req = req.EnteredAs(row)
	if err := s.actOn(req, s.rest.Asker(req), in, h); err != nil {
		p := rest.ProblemOf(req, s.rest.Log, err)
		s.rest.Finish(req, p.Status, p.Detail, p.Refs...)
		return "", err
	}
	s.rest.Finish(req, http.StatusOK, "")
	return "", nil
}

// actOn does what is asked for to one host, by the same ways as the operations on one host.
func (s *Server) actOn(req *rest.Request, who ledger.Asker, in *bulkInput, h *inventory.Host) (err error) {
	r, life := &in.Body, s.cfg.Engine
	on := r.On != nil && *r.On
	if is, name, has := flagOf(h, r.Verb); has && is == on {
		if on {
			return inventory.Errorf(inventory.Conflict, "host %s is %s already", h.Name, name)
		}
		return inventory.Errorf(inventory.Conflict, "host %s is not %s", h.Name, name)
	}
	switch r.Verb {
	case "accept":
		_, err = life.Accept(req, h.ID, who)
	case "inspect":
		_, err = life.Inspect(req, h.ID, r.Inspect, who)
	case "install":
		_, err = life.Install(req, h.ID, r.Profile, who)
	case "power":
		_, err = life.Power(req, h.ID, r.Action, who)
	case "maintain":
		_, err = life.Maintain(req, h.ID, on, who)
	case "protect":
		_, err = life.Protect(req, h.ID, on, who)
	case "cordon":
		_, err = life.Cordon(req, h.ID, on, who)
	case "retain":
		_, err = life.Retain(req, h.ID, on, who)
	case "adopt":
		_, err = life.Adopt(req, h.ID, on, who)
	case "confirm":
		_, err = life.Confirm(req, h.ID, who)
	case "clean":
		_, err = life.CleanHost(req, h.ID, r.Mode, who)
	case "release":
		_, err = life.Release(req, h.ID, who)
	case "set":
		var w *rest.Written
		w, err = s.patchHost(req, &patchHostInput{HostRef: rest.HostRef{Host: string(h.ID)}, WriteOptions: rest.WriteOptions{DryRun: in.DryRun}, Body: *r.Set})
		if err == nil && isUnchanged(w, h.Version) {
			err = inventory.Errorf(inventory.Conflict, "host %s is so already", h.Name)
		}
	case "locate":
		err = s.cfg.Devices.Locate(req, string(h.ID), on, in.DryRun)
	case "delete":
		_, err = s.deleteHost(req, &deleteHostInput{HostRef: rest.HostRef{Host: string(h.ID)}, WriteOptions: rest.WriteOptions{DryRun: in.DryRun}, Force: r.Force})
	}
	return err
}

// flagOf returns the flag that a verb switches, and in words what a host with it is.
func flagOf(h *inventory.Host, verb string) (is bool, name string, has bool) {
	switch verb {
	case "maintain":
		return h.InMaintenance, "in maintenance", true
	case "protect":
		return h.IsProtected, "protected", true
	case "cordon":
		return h.IsCordoned, "cordoned", true
	case "retain":
		return h.IsRetained, "retained", true
	case "adopt":
		return h.IsAdopted, "adopted", true
	}
	return false, "", false
}

// isUnchanged reports whether a write of a host changed nothing, or as a dry run would change nothing.
func isUnchanged(w *rest.Written, version int64) bool {
	switch body := w.Body.(type) {
	case rest.Diff:
		return len(body.Changes) == 0
	case inventory.Host:
		return body.Version == version
	}
	return false
}
