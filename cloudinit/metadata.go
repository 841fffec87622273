package cloudinit

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"slipway.dev/slipway/machineconfig"
)

// MetaData returns the meta-data of a NoCloud seed: the identity of the machine. It holds every name that a jinja template
// of Cluster API may use. cloud-init replaces a missing name by an error text in the middle of a file.
func MetaData(c *machineconfig.Config) []byte {
	return block(metaData(c))
}

func metaData(c *machineconfig.Config) object {
	o := object{{"instance-id", instanceID(c)}}
	// The short name, since templates make the node's name of it; the whole one is in user-data.
	o = o.with("local-hostname", c.Host.Hostname).with("hostname", c.Host.Hostname)
	for _, k := range slices.Sorted(maps.Keys(c.Host.MetaData)) {
		o = append(o, entry{k, c.Host.MetaData[k]})
	}
	if !needsJinja(c) && c.Bootstrap == nil && c.Host.MachineID == "" {
		return o
	}
	zone, provider := "", ""
	if c.Bootstrap != nil {
		zone, provider = c.Bootstrap.Labels["topology.kubernetes.io/zone"], c.Bootstrap.ProviderID
	}
	return append(o, entry{"provider_id", provider}, entry{"machine_id", c.Host.MachineID}, entry{"failure_domain", zone})
}

func needsJinja(c *machineconfig.Config) bool {
	return c.Activation != nil && c.Activation.Prelude != nil && c.Activation.Prelude.Jinja || c.Document != nil && c.Document.Jinja
}

// instanceID is never empty: without one cloud-init takes the same machine for a new one at every boot.
func instanceID(c *machineconfig.Config) string {
	return cmp.Or(c.Host.InstanceID, "slipway-"+c.Host.Hostname)
}

// ec2Prefix starts the names of documents that only clients of EC2 metadata ask for.
const ec2Prefix = "ec2/latest/meta-data/"

// ec2Documents are the leaves of the metadata tree; its inner nodes are listings that EC2Path makes unnecessary.
func ec2Documents(c *machineconfig.Config) []machineconfig.Document {
	leaves := []entry{
		{"ami-launch-index", "0"},
		{"hostname", c.Host.FQDN()},
		{"instance-id", instanceID(c)},
		{"local-hostname", c.Host.FQDN()},
	}
	var names []string
	var docs []machineconfig.Document
	for _, l := range leaves {
		names = append(names, l.key)
		docs = append(docs, machineconfig.Document{Name: ec2Prefix + l.key, ContentType: "text/plain", Data: []byte(l.value.(string))})
	}
	index := machineconfig.Document{Name: ec2Prefix + "index", ContentType: "text/plain", Data: []byte(strings.Join(names, "\n"))}
	return append([]machineconfig.Document{index}, docs...)
}

// EC2Path returns the document that answers a path of EC2-style metadata, such as 2009-04-04/meta-data/hostname. The same
// documents answer every API version, and user-data is the NoCloud one. A secret in it therefore counts once, whichever way
// the machine fetches it. It returns "" for paths that EC2 answers with 404.
func EC2Path(path string) string {
	_, rest, _ := strings.Cut(strings.TrimPrefix(path, "/"), "/")
	switch rest {
	case "user-data":
		return "user-data"
	case "meta-data", "meta-data/":
		return ec2Prefix + "index"
	}
	leaf, ok := strings.CutPrefix(rest, "meta-data/")
	switch {
	case !ok, strings.Contains(leaf, "/"):
		return ""
	case leaf == "ami-launch-index", leaf == "hostname", leaf == "instance-id", leaf == "local-hostname":
		return ec2Prefix + leaf
	}
	return ""
}
