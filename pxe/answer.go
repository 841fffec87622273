package pxe

import (
	"net/netip"
	"net/url"
	"strings"

	"slipway.dev/slipway/inventory"
)

// noProxyWait is option 175 with suboption 176 = 1: iPXE then takes the offer at once instead of waiting 3 s for a
// ProxyDHCP server (its setting no-pxedhcp).
var noProxyWait = [...]byte{0xb0, 0x01, 0x01}

// useBootFile is option 43 with discovery control 8: use the boot file as it is named, and search no boot server (PXE
// 2.1 section 2.2.3).
var useBootFile = [...]byte{6, 1, 8, 0xff}

// Answer returns what DHCP adds to an answer, so that the machine boots as decided. base is the URL of our boot
// server as the machine reaches it, such as http://10.0.0.1.
//
// PXE firmware gets no option 60: OVMF drops a boot file that comes with 60=PXEClient and without 43, and asks port 4011
// instead. HTTP Boot firmware ignores an answer without 60=HTTPClient (UEFI 24.7.2). iPXE gets a script, never a loader, so
// that it cannot load itself again and again.
func Answer(c Client, d Decision, s inventory.SessionID, base string) Reply {
	if d.Boot == BootIgnore || d.Boot == BootDisk && d.Disk == inventory.DiskNoOffer {
		return Reply{}
	}
	switch {
	case c.Stage == StageIPXE:
		if c.IsProxy { // without siaddr it would ask port 4011 and ignore the answer
			return Reply{Next: c.Server, File: URL(base, s, "ask"), Class: "PXEClient"}
		}
		return Reply{Next: c.Server, File: URL(base, s, "ask"), IPXE: append([]byte(nil), noProxyWait[:]...)}
	case c.Stage == StageFirmware && d.Chain == ChainPXELinux && d.Loader == "": // U-Boot names its files itself, and asks siaddr for them
		return Reply{Next: c.Server}
	case c.Stage != StageFirmware || d.Loader == "":
		return Reply{}
	case c.IsHTTP():
		return Reply{File: URL(base, s, d.Loader), Class: "HTTPClient"}
	case c.IsProxy: // EDK2 takes a proxy's offer that says to skip discovery before all others
		return Reply{Next: c.Server, File: d.Loader, Class: "PXEClient", PXE: append([]byte(nil), useBootFile[:]...)}
	}
	return Reply{Next: c.Server, File: d.Loader}
}

// URL returns the address of one part of a boot: loader, ask, script, report or artefact/<hex>/<name>. Without a
// session the server finds the boot by the machine's address.
func URL(base string, s inventory.SessionID, parts ...string) string {
	var b strings.Builder
	b.WriteString(cleanURL(strings.TrimRight(base, "/")))
	b.WriteString("/boot")
	if s != "" {
		b.WriteByte('/')
		b.WriteString(url.PathEscape(string(s)))
	}
	for _, p := range parts {
		for _, word := range strings.Split(p, "/") { // loaders of a distribution lie in a folder
			b.WriteByte('/')
			b.WriteString(url.PathEscape(word))
		}
	}
	return b.String()
}

// BaseURL returns the URL of our boot listener at one of our addresses, without a slash at its end. Port 80 is left out:
// some firmware sends a Host header that does not match a URL with it.
func BaseURL(a netip.Addr, port int) string {
	a = a.Unmap().WithZone("")
	switch {
	case port != 80:
		return "http://" + netip.AddrPortFrom(a, uint16(port)).String()
	case a.Is6():
		return "http://[" + a.String() + "]"
	}
	return "http://" + a.String()
}

// SecureURL returns the URL of our boot server over TLS.
func SecureURL(a netip.Addr, port int) string {
	return "https://" + netip.AddrPortFrom(a.Unmap().WithZone(""), uint16(port)).String()
}

// ArtefactURL returns where a machine fetches a file of its image.
func ArtefactURL(base string, s inventory.SessionID, f inventory.ImageArtefact) string {
	return URL(base, s, "artefact", f.Digest.Hex(), f.Name)
}

// cleanURL drops what cannot be in a URL and what iPXE would read as a setting or the end of a word.
func cleanURL(s string) string {
	return strings.Map(func(r rune) rune {
		if r <= ' ' || r >= 0x7f || strings.ContainsRune("${}\\\"'<>`|^#;", r) {
			return -1
		}
		return r
	}, s)
}
