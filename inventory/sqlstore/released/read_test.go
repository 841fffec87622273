package released

import (
	"encoding"
	"encoding/json"
	"fmt"
	"reflect"
	"time"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/inventory/noun"
	"slipway.dev/slipway/inventory/storetest"
)

// reads returns every noun of a database, by the table that holds it. Tables that are part of a noun are named by it.
func reads(tx inventory.Tx) map[string]func() (any, error) {
	all := inventory.Page{}
	host, other := storetest.Host(1).ID, storetest.Host(2).ID
	known := map[string]func() (any, error){
		"allocations":    func() (any, error) { return tx.ListAllocations(inventory.AddressFilter{}) },
		"artefacts":      func() (any, error) { return tx.ListArtefacts(all) },
		"audit":          func() (any, error) { return tx.WalkAudits(0, 100) },
		"bmcs":           func() (any, error) { return tx.ListBMCs(all) },
		"claims":         func() (any, error) { return tx.FindClaimOfHost(host) },
		"cluster_access": list(tx.ListClusterAccess),
		"deliveries":     func() (any, error) { return tx.FindDelivery(session, "user-data") },
		"duties":         list(tx.ListDuties),
		"events":         func() (any, error) { return tx.ListEvents(inventory.EventFilter{}, 0, 0) },
		"heard":          func() (any, error) { return tx.ListHeard() },
		"holdings":       func() (any, error) { return tx.ListHoldings(inventory.AddressFilter{}) },
		"host_labels":    func() (any, error) { return tx.ListHosts(inventory.HostFilter{Label: "role=worker"}, all) },
		"hosts":          func() (any, error) { return tx.ListHosts(inventory.HostFilter{}, all) },
		"nics":           func() (any, error) { return tx.FindHostByMAC(storetest.MAC(2)) },
		"image_files":    nil, "ranges": nil, "ranges6": nil, // images and subnets read these
		"images":        func() (any, error) { return tx.Images().List(all) },
		"inspections":   func() (any, error) { return tx.ListInspections(other, 0) },
		"instances":     list(tx.ListInstances),
		"issue_hosts":   func() (any, error) { return tx.ListIssues(true, host) },
		"issues":        func() (any, error) { return tx.ListIssues(true, "") },
		"join_tokens":   func() (any, error) { return tx.ListJoinTokens("") },
		"layers":        func() (any, error) { return tx.Layers().List(all) },
		"leases":        func() (any, error) { return tx.ListLeases("rack1", all) },
		"leases6":       func() (any, error) { return tx.ListLeases("six", all) },
		"locks":         list(tx.ListLocks),
		"logins":        func() (any, error) { return tx.ListLogins(inventory.LoginFilter{}) },
		"machines":      func() (any, error) { return tx.ListMachines(inventory.MachineFilter{}, all) },
		"operations":    func() (any, error) { return tx.ListOperations(inventory.OperationFilter{}, all) },
		"profiles":      func() (any, error) { return tx.Profiles().List(all) },
		"renderings":    func() (any, error) { return tx.ListRenderings(host, 0) },
		"reports":       func() (any, error) { return tx.ListReports(other, "", 0) },
		"reservations":  func() (any, error) { return tx.ListReservations("rack1", all) },
		"reservations6": func() (any, error) { return tx.ListReservations("six", all) },
		"revisions":     func() (any, error) { return tx.ListRevisions(inventory.RevisionOfProfile, "web", 0, 0) },
		"secrets":       func() (any, error) { return tx.Secrets().Find("db") }, // a list leaves out what is sealed
		"sessions":      func() (any, error) { return tx.ListSessions("", all) },
		"site_keys":     func() (any, error) { return tx.FindSiteKey("boot") },
		"subnets":       func() (any, error) { return tx.Subnets().List(all) },
		"tokens":        list(tx.ListTokens),
		"views":         func() (any, error) { return tx.ListViews("anna") },
	}
	for _, n := range noun.All() {
		if table := n.About().Table; known[table] == nil {
			known[table] = func() (any, error) { return n.Of(tx).List(all) }
		}
	}
	return known
}

func list[T any](of func() ([]T, error)) func() (any, error) {
	return func() (any, error) { return of() }
}

// plain turns a noun into what JSON writes: every exported field by its Go name, fields that JSON hides included. Fields
// without a value are left out, so that a new field changes nothing.
func plain(v reflect.Value) any {
	switch x := v.Interface().(type) {
	case time.Time:
		return x.UTC().Format(time.RFC3339Nano)
	case json.RawMessage:
		return string(x)
	case []byte:
		return fmt.Sprintf("%x", x)
	case encoding.TextMarshaler: // addresses and networks
		if b, err := x.MarshalText(); err == nil {
			return string(b)
		}
	}
	switch v.Kind() {
	case reflect.Pointer, reflect.Interface:
		if v.IsNil() {
			return nil
		}
		return plain(v.Elem())
	case reflect.Struct:
		out := map[string]any{}
		for i := range v.NumField() {
			if f := v.Type().Field(i); f.IsExported() && !v.Field(i).IsZero() {
				out[f.Name] = plain(v.Field(i))
			}
		}
		return out
	case reflect.Map:
		out := map[string]any{}
		for _, k := range v.MapKeys() {
			out[fmt.Sprint(k.Interface())] = plain(v.MapIndex(k))
		}
		return out
	case reflect.Slice:
		out := make([]any, v.Len())
		for i := range out {
			out[i] = plain(v.Index(i))
		}
		return out
	}
	return v.Interface()
}
