package sqlstore

import (
	"maps"
	"slices"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/inventory/sqlstore/database"
)

// settingTables are tables that people edit now and then and that every boot reads. Their rows are kept in memory. Duties are here because
// each write on PostgreSQL asks for one. Nothing cascades into them: see database.Changes.
var settingTables = []string{
	"profiles", "images", "image_files", "layers", "subnets", "classes", "ranges", "ranges6", "accept_rules", "secrets", "join_targets",
	"pools", "clusters", "duties",
}

// setting is database.Remember.
func setting[T any](t *tx, key string, own func(T) T, read func() (T, error)) (T, error) {
	return database.Remember(&t.store.settings, t.Tx, key, own, read)
}

// ownProfile copies what a caller may change: the kept value is shared by all transactions.
func ownProfile(p inventory.Profile) inventory.Profile {
	p.KernelArgs, p.Parameters, p.Accepts = slices.Clone(p.KernelArgs), maps.Clone(p.Parameters), slices.Clone(p.Accepts)
	if p.Document != nil {
		d := *p.Document
		p.Document = &d
	}
	return p
}

func ownProfiles(all []inventory.Profile) []inventory.Profile {
	all = slices.Clone(all)
	for i := range all {
		all[i] = ownProfile(all[i])
	}
	return all
}

func ownImage(i inventory.Image) inventory.Image {
	i.Files, i.KernelArgs = slices.Clone(i.Files), slices.Clone(i.KernelArgs)
	i.Configs, i.ConfigArgs = slices.Clone(i.Configs), slices.Clone(i.ConfigArgs)
	return i
}

func ownSubnets(all []inventory.Subnet) []inventory.Subnet {
	all = slices.Clone(all)
	for i := range all {
		n := &all[i]
		n.DNS, n.NTP, n.Routes, n.Ranges = slices.Clone(n.DNS), slices.Clone(n.NTP), slices.Clone(n.Routes), slices.Clone(n.Ranges)
		n.StaticRanges = slices.Clone(n.StaticRanges)
		n.Options = slices.Clone(n.Options)
	}
	return all
}

func ownSelf[T any](v T) T { return v }
