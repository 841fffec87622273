package address

import (
	"fmt"
	"net/netip"
	"regexp"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"slipway.dev/slipway/machineconfig"
	"slipway.dev/slipway/machineconfig/pointer"
)

// Static is an address that a configuration gives the machine, at any place.
type Static struct {
	Address netip.Addr
	Path    string // "" in the profile's own document
	Source  string // layer and line
}

// StaticIn returns the addresses that a configuration gives the machine. They come from its interfaces, the
// profile's own document, and the files of network tools. Loopback and link-local addresses are everybody's. It is to be
// expanded before.
func StaticIn(c *machineconfig.Config) (all []Static) {
	add := func(path, source, text string) {
		if a, ok := machineAddress(text); ok {
			all = append(all, Static{a, path, source})
		}
	}
	c.EachAddress(add)
	for _, f := range c.Files {
		at := pointer.Add("/files", f.Path)
		for _, said := range addressesInFile(f.Path, f.Text) {
			add(at+"/text", c.SourceOf(at+"/text"), said.text)
		}
	}
	if d := c.Document; d != nil {
		for _, said := range addressesInDocument(d.Format, string(d.Data)) {
			add("", fmt.Sprintf("document:%d:1", said.line), said.text)
		}
	}
	return all
}

// machineAddress reads an address with or without prefix length, and drops those that every machine may have.
func machineAddress(text string) (netip.Addr, bool) {
	text, _, _ = strings.Cut(strings.Trim(strings.TrimSpace(text), `"'`), "/")
	a, err := netip.ParseAddr(text)
	if err != nil {
		return a, false
	}
	a = a.Unmap().WithZone("")
	return a, !a.IsUnspecified() && !a.IsLoopback() && !a.IsLinkLocalUnicast() && !a.IsMulticast()
}

// said is a text and the line it stands on.
type said struct {
	text string
	line int
}

// fileAddresses says how the tools that set up networks write an address, by the beginnings of their files' paths.
var fileAddresses = []struct {
	path string
	re   *regexp.Regexp
}{
	{"/etc/systemd/network/", regexp.MustCompile(`(?m)^[ \t]*Address[ \t]*=[ \t]*(\S+)`)},
	{"/etc/NetworkManager/system-connections/", regexp.MustCompile(`(?m)^[ \t]*address(?:es)?\d*[ \t]*=[ \t]*([^,;\s]+)`)},
	{"/etc/network/interfaces", regexp.MustCompile(`(?m)^[ \t]*address[ \t]+(\S+)`)},
	{"/etc/sysconfig/network-scripts/ifcfg-", regexp.MustCompile(`(?m)^[ \t]*(?:IPADDR\d*|IPV6ADDR)[ \t]*=[ \t]*(\S+)`)},
	{"/etc/sysconfig/network/ifcfg-", regexp.MustCompile(`(?m)^[ \t]*IPADDR(?:_\w+)?[ \t]*=[ \t]*(\S+)`)},
}

func addressesInFile(path, text string) []said {
	if strings.HasPrefix(path, "/etc/netplan/") {
		return addressesInYAML(text, true)
	}
	for _, f := range fileAddresses {
		if strings.HasPrefix(path, f.path) {
			return matches(f.re, text)
		}
	}
	return nil
}

func matches(re *regexp.Regexp, text string) (all []said) {
	for _, m := range re.FindAllStringSubmatchIndex(text, -1) {
		all = append(all, said{text[m[2]:m[3]], 1 + strings.Count(text[:m[2]], "\n")})
	}
	return all
}

var (
	preseedAddressRE = regexp.MustCompile(`(?m)^[ \t]*\S+[ \t]+netcfg/get_ipaddress[ \t]+string[ \t]+(\S+)`)
	kickstartIPRE    = regexp.MustCompile(`(?m)^[ \t]*network[ \t].*?--ip[ \t=]+([^\s#]+)`)
	kickstartIP6RE   = regexp.MustCompile(`(?m)^[ \t]*network[ \t].*?--ipv6[ \t=]+([^\s#]+)`)
)

// addressesInDocument reads what a document in a tool's words gives the machine.
func addressesInDocument(format, text string) []said {
	switch format {
	case "kickstart":
		return append(matches(kickstartIPRE, text), matches(kickstartIP6RE, text)...)
	case "preseed":
		return matches(preseedAddressRE, text)
	case "autoinstall", "cloud-config", "butane", "ignition", "talos":
		return addressesInYAML(text, false)
	}
	return nil
}

// addressesInYAML reads the addresses of network configurations: what netplan and cloud-init's version 2 have under
// addresses, version 1 under subnets, and Talos under interfaces; and the files of network tools that a document writes.
// JSON is YAML. isNetwork says that the whole text is one.
func addressesInYAML(text string, isNetwork bool) []said {
	var root yaml.Node
	if yaml.Unmarshal([]byte(text), &root) != nil {
		return nil
	}
	w := &addressWalker{}
	w.walk(&root, "", isNetwork, 0)
	return w.all
}

type addressWalker struct{ all []said }

// maxYAMLDepth bounds how deep the search goes into a document; it follows no aliases.
const maxYAMLDepth = 64

func (w *addressWalker) walk(n *yaml.Node, key string, isNetwork bool, depth int) {
	if depth > maxYAMLDepth {
		return
	}
	switch n.Kind {
	case yaml.MappingNode:
		w.file(n)
		for i := 0; i+1 < len(n.Content); i += 2 {
			k, v := n.Content[i].Value, n.Content[i+1]
			if slices.Contains([]string{"nameservers", "routes", "routing-policy", "match"}, k) {
				continue
			}
			if isNetwork && k == "address" && v.Kind == yaml.ScalarNode {
				w.all = append(w.all, said{v.Value, v.Line})
				continue
			}
			w.walk(v, k, isNetwork || k == "network", depth+1)
		}
	case yaml.SequenceNode, yaml.DocumentNode:
		for _, item := range n.Content {
			if isNetwork && key == "addresses" && item.Kind == yaml.ScalarNode {
				w.all = append(w.all, said{item.Value, item.Line})
				continue
			}
			w.walk(item, key, isNetwork, depth+1)
		}
	}
}

// file reads a mapping that says a file: with path, and content, contents.inline or contents.source.
func (w *addressWalker) file(n *yaml.Node) {
	var path string
	var text *yaml.Node
	for i := 0; i+1 < len(n.Content); i += 2 {
		switch k, v := n.Content[i].Value, n.Content[i+1]; {
		case k == "path":
			path = v.Value
		case k == "content":
			text = v
		case k == "contents" && v.Kind == yaml.MappingNode:
			for j := 0; j+1 < len(v.Content); j += 2 {
				if v.Content[j].Value == "inline" {
					text = v.Content[j+1]
				}
			}
		}
	}
	if path == "" || text == nil {
		return
	}
	for _, s := range addressesInFile(path, text.Value) {
		w.all = append(w.all, said{s.text, text.Line})
	}
}
