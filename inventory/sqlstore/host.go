package sqlstore

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/inventory/sqlstore/column"
	"slipway.dev/slipway/inventory/sqlstore/database"
)

// hostNames are the columns that a host is read from.
var hostNames = columns(`id name state state_reason state_since_at in_maintenance is_protected is_adopted is_cordoned is_retained
uuid serial asset_tag manufacturer product arch firmware memory_mib site row rack unit place_height place_face
labels facts profile profile_revision disk_boot port is_armed taints root_disk
keep_disks is_dirty failure_n reuse_key freed_at claim_id machine created_at updated_at last_seen_at identified_at version refs`)

var (
	hostPlaces  = database.PlacesOf(hostNames)
	hostColumns = strings.NewReplacer(" profile,", " COALESCE(profile, ''),", "claim_id", "COALESCE(claim_id, '')").
			Replace(strings.Join(hostNames, ", "))

	findHostSQL       = `SELECT ` + hostColumns + ` FROM hosts WHERE id = $1`
	findHostByNameSQL = `SELECT ` + hostColumns + ` FROM hosts WHERE name = $1`
	findHostByMACSQL  = `SELECT ` + hostColumns + ` FROM hosts WHERE id = (SELECT host_id FROM nics WHERE mac = $1)`
	findHostByPortSQL = `SELECT ` + hostColumns + ` FROM hosts WHERE port = $1 AND port <> ''`
)

const (
	hostsOfUUIDSQL   = `SELECT id FROM hosts WHERE uuid = $1 AND uuid <> '' ORDER BY state = 'discovered', name LIMIT 64`
	hostsOfSerialSQL = `SELECT id FROM hosts WHERE serial = $1 AND serial <> '' ORDER BY state = 'discovered', name LIMIT 64`

	listPlacesSQL  = `SELECT id, name, site, row, rack, unit, place_height, place_face FROM hosts WHERE name > '' ORDER BY name`
	hostVersionSQL = `SELECT version FROM hosts WHERE id = $1`
	holderNameSQL  = `SELECT id FROM hosts WHERE name = $1`
	holderMACSQL   = `SELECT host_id FROM nics WHERE mac = $1`
	holderPortSQL  = `SELECT id, name FROM hosts WHERE port = $1 AND port <> ''`
	hasProfileSQL  = `SELECT name FROM profiles WHERE name = $1`

	deleteHostSQL = `DELETE FROM hosts WHERE id = $1`

	hostNICsSQL   = `SELECT mac, name, vendor, is_boot, port FROM nics WHERE host_id = $1 ORDER BY position`
	insertNICSQL  = `INSERT INTO nics (mac, host_id, position, name, vendor, is_boot, port) VALUES ($1, $2, $3, $4, $5, $6, $7)`
	sharedPortSQL = `SELECT mac FROM nics WHERE port = $1 AND port <> '' AND host_id <> $2 LIMIT 1`
	deleteNICsSQL = `DELETE FROM nics WHERE host_id = $1`

	insertHostLabelSQL  = `INSERT INTO host_labels (host_id, key, value) VALUES ($1, $2, $3)`
	deleteHostLabelsSQL = `DELETE FROM host_labels WHERE host_id = $1`
)

func readHost(s database.Scan) (h inventory.Host, err error) {
	err = s(&h.ID, &h.Name, &h.State, &h.StateReason, column.Time(&h.StateSinceAt), &h.InMaintenance, &h.IsProtected,
		&h.IsAdopted, &h.IsCordoned, &h.IsRetained, &h.UUID, &h.Serial, &h.AssetTag, &h.Manufacturer, &h.Product, &h.Arch, &h.Firmware, &h.MemoryMiB,
		&h.Place.Site, &h.Place.Row, &h.Place.Rack, &h.Place.Unit, &h.Place.Height, &h.Place.Face, column.JSON(&h.Labels),
		column.JSON(&h.Facts),
		&h.Profile, &h.ProfileRevision, &h.DiskBoot, &h.Port, &h.IsArmed, column.JSON(&h.Taints), column.JSON(&h.RootDisk),
		column.JSON(&h.KeepDisks), &h.IsDirty, &h.FailureN, &h.ReuseKey, column.Time(&h.FreedAt), &h.ClaimID, &h.Machine,
		column.Time(&h.CreatedAt), column.Time(&h.UpdatedAt),
		column.Time(&h.LastSeenAt), column.Time(&h.IdentifiedAt), &h.Version, column.JSON(&h.Refs))
	return h, err
}

// FindHost implements inventory.HostTx.
func (t hostTx) FindHost(id inventory.HostID) (inventory.Host, error) {
	if !hostPlaces.Is(t.lastHost.row, "id", string(id)) {
		t.Ahead(hostNICsSQL, string(id))
	}
	return t.findHost("id", findHostSQL, string(id))
}

// FindHostByName implements inventory.HostTx.
func (t hostTx) FindHostByName(name string) (inventory.Host, error) {
	return t.findHost("name", findHostByNameSQL, name)
}

// FindHostByPort implements inventory.HostTx.
func (t hostTx) FindHostByPort(port string) (inventory.Host, error) {
	return t.findHost("port", findHostByPortSQL, port)
}

// FindHostByMAC implements inventory.HostTx.
func (t hostTx) FindHostByMAC(mac inventory.MAC) (inventory.Host, error) {
	if t.IsRead() && !t.Asks() || t.store.server() == nil {
		return t.findHost("", findHostByMACSQL, string(mac))
	}
	// A change of another host leaves these answers as they are.
	var id inventory.HostID
	if found, err := t.Row([]any{&id}, holderMACSQL, string(mac)); err != nil || !found {
		return inventory.Host{}, cmp.Or(err, absent("host", string(mac)))
	}
	return t.FindHost(id)
}

// lastHost is the host that a transaction has read or stored last, as a row: see findLast.
type lastHost struct {
	row  database.Row
	nics []inventory.NIC
}

// findHost finds a host by a column, or "" for something else.
func (t hostTx) findHost(column, query, key string) (h inventory.Host, err error) {
	if key == "" || column == "" || !hostPlaces.Is(t.lastHost.row, column, key) {
		row, err := t.One(query, key)
		if err == nil && row == nil {
			err = absent("host", key)
		}
		if err != nil {
			return h, err
		}
		nics, err := t.hostNICs(inventory.HostID(hostPlaces.Text(row, "id")))
		if err != nil {
			return h, err
		}
		t.lastHost = lastHost{row, nics}
	}
	h, err = readHost(t.lastHost.row.Scan)
	h.NICs = slices.Clone(t.lastHost.nics)
	return h, err
}

func (t hostTx) hostNICs(id inventory.HostID) ([]inventory.NIC, error) {
	return list(t.tx, func(s database.Scan) (n inventory.NIC, err error) {
		err = s(&n.MAC, &n.Name, &n.Vendor, &n.IsBoot, &n.Port)
		return n, err
	}, hostNICsSQL, string(id))
}

// IsPortShared implements inventory.HostTx.
func (t hostTx) IsPortShared(port string, h inventory.HostID) (bool, error) {
	var mac string
	return t.Row([]any{&mac}, sharedPortSQL, port, string(h))
}

// FindHostsByHint implements inventory.HostTx. Nearly always there are none, or the one that asks.
func (t hostTx) FindHostsByHint(uuid, serial string) (hosts []inventory.Host, err error) {
	var ids []inventory.HostID
	t.Ahead(hostsOfSerialSQL, serial)
	for _, by := range [][2]string{{hostsOfUUIDSQL, uuid}, {hostsOfSerialSQL, serial}} {
		err := t.Each(func(s database.Scan) error {
			var id inventory.HostID
			err := s(&id)
			ids = append(ids, id)
			return err
		}, by[0], by[1])
		if err != nil {
			return nil, err
		}
	}
	all, err := t.readHosts(ids)
	if err != nil {
		return nil, err
	}
	for _, h := range all {
		hosts = append(hosts, *h)
	}
	isLast := func(h inventory.Host) int { return column.Bit(h.State == inventory.Discovered) }
	slices.SortFunc(hosts, func(a, b inventory.Host) int { return cmp.Or(isLast(a)-isLast(b), cmp.Compare(a.Name, b.Name)) })
	return hosts[:min(len(hosts), 64)], nil
}

// ListHosts implements inventory.HostTx.
func (t hostTx) ListHosts(f inventory.HostFilter, p inventory.Page) ([]inventory.Host, error) {
	query, args := hostsSQL(f)
	hosts, err := list(t.tx, readHost, query, append(args, p.After, limit(p.Limit))...)
	if err != nil {
		return nil, err
	}
	return hosts, t.attachNICs(hosts)
}

// ListPlaces implements inventory.HostTx.
func (t hostTx) ListPlaces() ([]inventory.HostPlace, error) {
	return list(t.tx, func(s database.Scan) (h inventory.HostPlace, err error) {
		err = s(&h.ID, &h.Name, &h.Place.Site, &h.Place.Row, &h.Place.Rack, &h.Place.Unit, &h.Place.Height, &h.Place.Face)
		return h, err
	}, listPlacesSQL)
}

// hostsSQL asks for filtered hosts; the arguments that it leaves to the caller are the last two, after and limit.
func hostsSQL(f inventory.HostFilter) (query string, args []any) {
	where, args := hostWhere(f)
	n := len(args)
	return fmt.Sprintf(`SELECT %s FROM hosts WHERE %sname > $%d ORDER BY name LIMIT $%d`, hostColumns, where, n+1, n+2), args
}

// countHostsSQL counts filtered hosts.
func countHostsSQL(f inventory.HostFilter) (query string, args []any) {
	where, args := hostWhere(f)
	return `SELECT COUNT(*) FROM hosts WHERE ` + where + `1 = 1`, args
}

// CountHosts implements inventory.HostTx.
func (t hostTx) CountHosts(f inventory.HostFilter) (n int, err error) {
	query, args := countHostsSQL(f)
	_, err = t.Row([]any{&n}, query, args...)
	return n, err
}

// hostWhere writes a filter as terms, each followed by AND, with its arguments.
func hostWhere(f inventory.HostFilter) (where string, args []any) {
	term := func(format string, values ...any) {
		var at []any
		for i := range values {
			at = append(at, len(args)+i+1)
		}
		where += fmt.Sprintf(format, at...) + " AND "
		args = append(args, values...)
	}
	if f.State != "" {
		term(`state = $%d`, string(f.State))
	}
	if f.Rack != "" {
		term(`rack = $%d`, f.Rack)
	}
	if key, value, has := strings.Cut(f.Label, "="); has {
		term(`id IN (SELECT host_id FROM host_labels WHERE key = $%d AND value = $%d)`, key, value)
	} else if key != "" {
		term(`id IN (SELECT host_id FROM host_labels WHERE key = $%d)`, key)
	}
	if f.Pool == inventory.DefaultPool {
		term(poolHosts + inDefaultPool + `))`)
	} else if f.Pool != "" {
		term(poolHosts+`pool = $%d))`, f.Pool)
	}
	if f.Search != "" {
		term(`search_text LIKE $%d ESCAPE '\'`, column.SearchPattern(f.Search))
	}
	return where, args
}

// hostsByIDSQL asks for n hosts, and nicsSQL for the NICs of n hosts.
func hostsByIDSQL(n int) string {
	return `SELECT ` + hostColumns + ` FROM hosts WHERE id IN (` + marks(n) + `)`
}

func nicsSQL(n int) string {
	return `SELECT host_id, mac, name, vendor, is_boot, port FROM nics WHERE host_id IN (` + marks(n) + `) ORDER BY host_id, position`
}

// readHosts reads hosts by their ids.
func (t hostTx) readHosts(ids []inventory.HostID) (map[inventory.HostID]*inventory.Host, error) {
	all := make(map[inventory.HostID]*inventory.Host, len(ids))
	return all, column.InParts(ids, func(args []any) error {
		t.Ahead(nicsSQL(len(args)), args...)
		err := t.Each(func(s database.Scan) error {
			h, err := readHost(s)
			all[h.ID] = &h
			return err
		}, hostsByIDSQL(len(args)), args...)
		if err != nil {
			return err
		}
		return t.readNICs(all, args)
	})
}

// attachNICs reads the NICs of many hosts.
func (t hostTx) attachNICs(hosts []inventory.Host) error {
	at, ids := make(map[inventory.HostID]*inventory.Host, len(hosts)), make([]inventory.HostID, len(hosts))
	for i := range hosts {
		ids[i], at[hosts[i].ID] = hosts[i].ID, &hosts[i]
	}
	return column.InParts(ids, func(args []any) error { return t.readNICs(at, args) })
}

func (t hostTx) readNICs(of map[inventory.HostID]*inventory.Host, ids []any) error {
	return t.Each(func(s database.Scan) error {
		var id inventory.HostID
		var n inventory.NIC
		if err := s(&id, &n.MAC, &n.Name, &n.Vendor, &n.IsBoot, &n.Port); err != nil {
			return err
		}
		of[id].NICs = append(of[id].NICs, n)
		return nil
	}, nicsSQL(len(ids)), ids...)
}

// CreateHost implements inventory.HostTx.
func (t hostTx) CreateHost(h *inventory.Host, now time.Time) error {
	if err := t.checkHost(h, &inventory.Host{}); err != nil {
		return err
	}
	now = stamp(now)
	args, err := t.hostArgs(h, now)
	if err != nil {
		return err
	}
	args = append(append([]any{string(h.ID)}, args...), column.MS(now))
	if err := t.Later(nil, insertHostSQL, args...); err != nil {
		return err
	}
	if err := t.insertNICs(h); err != nil {
		return err
	}
	if err := t.insertLabels(h); err != nil {
		return err
	}
	t.idle, t.newHost = h.ID, h.Name
	h.ClaimID, h.Machine = "", ""
	h.CreatedAt, h.UpdatedAt, h.Version = now, now, 1
	return nil
}

// UpdateHost implements inventory.HostTx. It checks and writes name, MACs and port only if they have changed: they seldom
// do, and the check needs further queries.
func (t hostTx) UpdateHost(h *inventory.Host, now time.Time) error {
	has, err := t.FindHost(h.ID)
	if err != nil {
		return err
	}
	last := t.lastHost.row // what follows may read another one
	if has.Version != h.Version {
		return t.updated(0, nil, "host", string(h.ID), h.Version, hostVersionSQL, string(h.ID))
	}
	if err := t.checkHost(h, &has); err != nil {
		return err
	}
	now = stamp(now)
	args, err := t.hostArgs(h, now)
	if err != nil {
		return err
	}
	t.lastHost, t.newHost = lastHost{}, ""
	update := &updateHostRow
	switch {
	case h.Name != has.Name || h.Port != has.Port || h.Profile != has.Profile || h.UUID != has.UUID || h.Serial != has.Serial || h.Place.Rack != has.Place.Rack:
		update = &updateHostKeys
	case h.State != has.State:
		update = &updateHostState
	}
	if err := t.Later(nil, update.Query, update.Args(args, string(h.ID), h.Version)...); err != nil {
		return err
	}
	if !slices.Equal(has.NICs, h.NICs) {
		if err := t.Later(nil, deleteNICsSQL, string(h.ID)); err != nil {
			return err
		}
		if err := t.insertNICs(h); err != nil {
			return err
		}
	}
	if !maps.Equal(has.Labels, h.Labels) {
		if err := t.Later(nil, deleteHostLabelsSQL, string(h.ID)); err != nil {
			return err
		}
		if err := t.insertLabels(h); err != nil {
			return err
		}
	}
	h.UpdatedAt = now
	h.Version++
	if row := database.RowOf(args); row != nil && slices.Equal(has.NICs, h.NICs) {
		for i, field := range hostFields {
			if at, isRead := hostPlaces[field]; isRead {
				last[at] = row[i]
			}
		}
		hostPlaces.Set(last, map[string]any{"version": h.Version})
		t.lastHost = lastHost{last, has.NICs}
	}
	return nil
}

// hostArgs returns the arguments that insert and update share, in the order of hostFields.
func (t hostTx) hostArgs(h *inventory.Host, now time.Time) ([]any, error) {
	texts, err := t.jsonTexts(h.Labels, h.Facts, h.Taints, h.RootDisk, h.KeepDisks, h.Refs)
	if err != nil {
		return nil, err
	}
	return []any{
		h.Name, string(h.State), h.StateReason, column.MS(h.StateSinceAt), column.Bit(h.InMaintenance), column.Bit(h.IsProtected),
		column.Bit(h.IsAdopted), h.UUID, h.Serial, h.AssetTag, h.Manufacturer, h.Product, string(h.Arch), string(h.Firmware),
		h.MemoryMiB, h.Place.Site, h.Place.Row, h.Place.Rack, h.Place.Unit, texts[0], texts[1], h.Profile,
		h.ProfileRevision, string(h.DiskBoot), column.Bit(h.IsArmed), texts[2], texts[3], texts[4], column.Bit(h.IsDirty),
		h.FailureN, h.ReuseKey, column.MS(h.FreedAt), column.SearchText(h), column.Bit(h.IsCordoned), column.Bit(h.IsRetained),
		h.Place.Height, string(h.Place.Face), h.Port, texts[5], column.MS(now), column.MS(h.LastSeenAt), column.MS(h.IdentifiedAt),
	}, nil
}

// checkHost refuses a name, MAC or port that another host has, and a profile that does not exist, before anything is
// written. What the host has already is its own.
func (t hostTx) checkHost(h, has *inventory.Host) error {
	var id inventory.HostID
	var name string
	if h.Name != has.Name {
		found, err := t.Row([]any{&id}, holderNameSQL, h.Name)
		if err != nil {
			return err
		}
		if found && id != h.ID {
			return inventory.Errorf(inventory.Conflict, "the name %s belongs to host %s", h.Name, inventory.HostRef(string(id))).WithHint("choose another name")
		}
	}
	for _, n := range h.NICs {
		if slices.ContainsFunc(has.NICs, func(own inventory.NIC) bool { return own.MAC == n.MAC }) {
			continue
		}
		found, err := t.Row([]any{&id}, holderMACSQL, string(n.MAC))
		if err != nil {
			return err
		}
		if found && id != h.ID {
			other, err := t.FindHost(id)
			if err != nil {
				return err
			}
			return inventory.Errorf(inventory.Conflict, "MAC %s belongs to host %s", n.MAC, inventory.HostRef(other.Name)).
				WithHint("a MAC identifies one host: take it away from %s first, or delete that host", other.Name)
		}
	}
	if h.Port != has.Port {
		found, err := t.Row([]any{&id, &name}, holderPortSQL, h.Port)
		if err != nil {
			return err
		}
		if found && id != h.ID {
			return inventory.Errorf(inventory.Conflict, "port %s is that of host %s", h.Port, inventory.HostRef(name)).WithHint("one port, one host: take it away from %s first", name)
		}
	}
	if h.Profile == has.Profile && h.ProfileRevision == has.ProfileRevision {
		return nil
	}
	return t.checkPin(h)
}

// checkPin refuses a profile, or a revision of it, that is not stored.
func (t hostTx) checkPin(h *inventory.Host) error {
	if h.Profile == "" {
		if h.ProfileRevision != 0 {
			return inventory.Errorf(inventory.Invalid, "host %s pins revision %d of no profile", h.Name, h.ProfileRevision).
				WithHint("name the profile as well")
		}
		return nil
	}
	var name string
	found, err := t.Row([]any{&name}, hasProfileSQL, h.Profile)
	if err != nil {
		return err
	}
	if !found {
		return inventory.Errorf(inventory.Invalid, "host %s names profile %s, which does not exist", h.Name, h.Profile).
			WithHint("list them with: slipway profile list")
	}
	if h.ProfileRevision == 0 {
		return nil
	}
	_, err = t.configs().FindRevision(inventory.RevisionOfProfile, h.Profile, h.ProfileRevision)
	if inventory.IsKind(err, inventory.NotFound) {
		return inventory.Errorf(inventory.Invalid, "host %s pins revision %d of profile %s, which does not exist", h.Name, h.ProfileRevision, h.Profile).
			WithHint("list them with: slipway profile revisions %s", h.Profile)
	}
	return err
}

func (t hostTx) insertNICs(h *inventory.Host) error {
	for i, n := range h.NICs {
		if err := t.Later(nil, insertNICSQL, string(n.MAC), string(h.ID), i, n.Name, n.Vendor, column.Bit(n.IsBoot), n.Port); err != nil {
			return err
		}
	}
	return nil
}

func (t hostTx) insertLabels(h *inventory.Host) error {
	for _, key := range slices.Sorted(maps.Keys(h.Labels)) {
		if err := t.Later(nil, insertHostLabelSQL, string(h.ID), key, h.Labels[key]); err != nil {
			return err
		}
	}
	return nil
}

// DeleteHost implements inventory.HostTx. The host's layer, BMC and inspections go with it.
func (t hostTx) DeleteHost(id inventory.HostID) error {
	if c, err := t.machines().FindClaimOfHost(id); err == nil {
		return inventory.Errorf(inventory.Conflict, "host %s is claimed by machine %s", t.hostName(id), inventory.MachineRef(c.Machine)).
			WithHint("delete the machine first: slipway machine delete %s", c.Machine)
	} else if !inventory.IsKind(err, inventory.NotFound) {
		return err
	}
	l := inventory.Layer{Scope: inventory.ScopeHost, Name: string(id)}
	if err := t.Later(nil, layerTable.delete, l.Key()); err != nil {
		return err
	}
	t.lastHost, t.newHost = lastHost{}, ""
	n, err := t.Write(deleteHostSQL, string(id))
	return changed(n, err, "host", string(id))
}
