package simulate

import (
	"encoding/hex"
	"fmt"
	"net/netip"
	"strings"
)

// settings are iPXE's variables: what the machine is, what DHCP said, what the script set.
type settings map[string]string

// newSettings are the variables of a machine that has an address.
func newSettings(id Identity, efi bool, address, server, next netip.Addr, file string) settings {
	platform := "pcbios"
	if efi {
		platform = "efi"
	}
	s := settings{
		"uuid": uuidText(id.UUID), "serial": id.Serial, "asset": id.Asset, "manufacturer": id.Manufacturer,
		"product": id.Product, "board-serial": id.Serial + "B", "mac": macText(id.MAC, ":"), "busid": "01:1a:f4:10:00",
		"chip": "virtio-net", "buildarch": "x86_64", "platform": platform, "version": "1.0.0+git-20190125.36a4c85-5.1",
		"memsize": "16384", "cpumodel": "Synthetic CPU @ 2.40GHz", "ip": address.String(), "dhcp-server": server.String(),
		"next-server": next.String(), "filename": file, "user-class": "iPXE",
	}
	if !efi {
		s["buildarch"] = "i386"
	}
	return s
}

// get finds a variable; net0/mac and netX/mac are the same as mac here, because a machine has one card.
func (s settings) get(name string) string {
	if scope, rest, ok := strings.Cut(name, "/"); ok && (scope == "net0" || scope == "netX" || scope == "smbios") {
		name = rest
	}
	return s[name]
}

// isMAC says which variables are bytes, for the hex formats.
func isMAC(name string) bool {
	return name == "mac" || strings.HasSuffix(name, "/mac") || name == "busid" || strings.HasSuffix(name, "/busid")
}

// format writes a variable in one of iPXE's types (https://ipxe.org/cfg).
func (s settings) format(name, kind string) string {
	v := s.get(name)
	if v == "" {
		return ""
	}
	raw := []byte(v)
	if isMAC(name) {
		if b, err := hex.DecodeString(strings.ReplaceAll(v, ":", "")); err == nil {
			raw = b
		}
	}
	switch kind {
	case "hexhyp":
		return hexWith(raw, "-")
	case "hex":
		return hexWith(raw, ":")
	case "hexraw":
		return hexWith(raw, "")
	case "uristring":
		return uriEncode(v)
	default: // string, ipv4, uuid, int32 and the like are kept in their text form
		return v
	}
}

func hexWith(b []byte, sep string) string {
	words := make([]string, len(b))
	for i, c := range b {
		words[i] = fmt.Sprintf("%02x", c)
	}
	return strings.Join(words, sep)
}

// uriEncode escapes everything that RFC 3986 does not call unreserved.
func uriEncode(v string) string {
	var b strings.Builder
	for i := 0; i < len(v); i++ {
		c := v[i]
		if c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || strings.IndexByte("-._~", c) >= 0 {
			b.WriteByte(c)
			continue
		}
		fmt.Fprintf(&b, "%%%02X", c)
	}
	return b.String()
}

// maxExpansion bounds a line, which a variable that contains itself would grow without end.
const maxExpansion = 16 << 10

// expand replaces ${name} and ${name:type} in one word, innermost first, and goes on with the result, as iPXE does.
func (s settings) expand(line string) (string, error) {
	for range 1000 {
		end, start := -1, -1
		for from := 0; ; {
			i := strings.IndexByte(line[from:], '}')
			if i < 0 {
				break
			}
			if open := strings.LastIndex(line[:from+i], "${"); open >= 0 {
				start, end = open, from+i
				break
			}
			from += i + 1
		}
		if end < 0 {
			return line, nil
		}
		name, kind, _ := strings.Cut(line[start+2:end], ":")
		line = line[:start] + s.format(name, kind) + line[end+1:]
		if len(line) > maxExpansion {
			break
		}
	}
	return "", fmt.Errorf("a variable expands without end")
}
