package pxe

import (
	"encoding/hex"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"slipway.dev/slipway/inventory"
)

// maxNICs is how many network cards the ask script reports; iPXE numbers them from net0.
const maxNICs = 8

// ParseQuery is ParseIdentity for a query as it came over the wire. iPXE writes a space as %20 and leaves + alone, so + is
// no space here. It leaves out what it cannot decode.
func ParseQuery(raw string) (Client, error) {
	query, _ := url.ParseQuery(strings.ReplaceAll(raw, "+", "%2B")) // keeps what it could read
	return ParseIdentity(query)
}

// ParseIdentity reads the query of a script request, in which a machine says what it is (see AskScript). It cleans and
// truncates each value, and leaves out a value that makes no sense. A machine that cannot name itself still has to boot.
// Only a MAC that is there and is none is an error: it would be answered for another machine.
func ParseIdentity(query map[string][]string) (Client, error) {
	get := func(key string, limit int) string {
		if v := query[key]; len(v) > 0 {
			return inventory.Clean(v[0][:min(len(v[0]), 4*limit)], limit)
		}
		return ""
	}
	c := Client{Stage: StageIPXE}
	if text := get("mac", 64); text != "" {
		mac, err := inventory.ParseMAC(text)
		if err != nil {
			return Client{}, err
		}
		c.MAC = mac
	}
	id := &Identity{
		UUID: cleanUUID(get("uuid", 64)), Serial: cleanHint(get("serial", 128)), AssetTag: cleanHint(get("asset", 128)),
		Manufacturer: cleanHint(get("manufacturer", 128)), Product: cleanHint(get("product", 128)),
		BoardSerial: cleanHint(get("board-serial", 128)),
		Platform:    get("platform", 32), BuildArch: get("buildarch", 32), CPU: get("cpumodel", 128), Version: get("version", 64),
	}
	if n, err := strconv.ParseInt(get("memsize", 32), 0, 64); err == nil && n > 0 && n < 1<<30 {
		id.MemoryMiB = int(n)
	}
	for i := range maxNICs {
		mac, err := inventory.ParseMAC(get("mac"+strconv.Itoa(i), 64))
		if err == nil && !slices.Contains(id.MACs, mac) {
			id.MACs = append(id.MACs, mac)
		}
	}
	c.Arch, c.Firmware = platform(id)
	c.Choice = ParseChoice(get("choice", 16))
	switch get("secureboot", 8) { // the EFI variable, one byte in hex (UEFI 3.3)
	case "01":
		c.SecureBoot = SecureBootOn
	case "00":
		c.SecureBoot = SecureBootOff
	}
	c.UUID, c.IPXE.Version, c.IPXE.HasHTTP, c.Identity = id.UUID, id.Version, true, id
	return c, nil
}

// platform concludes from the build of iPXE what machine it runs on. A 32-bit build for BIOS says nothing about the
// processor; the one for UEFI runs on 32-bit firmware only.
func platform(id *Identity) (inventory.Arch, inventory.Firmware) {
	switch {
	case id.Platform == "pcbios":
		return inventory.X8664, inventory.BIOS
	case id.Platform != "efi":
		return "", ""
	}
	switch id.BuildArch {
	case "x86_64":
		return inventory.X8664, inventory.UEFI
	case "i386":
		return inventory.I386, inventory.UEFI
	case "arm64":
		return inventory.ARM64, inventory.UEFI
	}
	return "", inventory.UEFI
}

// cleanUUID returns a UUID in lower case with hyphens, or "" for what is none and for those that vendors put where
// they forgot to set one: all zeros, all ones (MSI boards, fogproject#196), and counting digits.
func cleanUUID(s string) string {
	s = strings.ToLower(strings.Trim(s, "{} "))
	digits := strings.ReplaceAll(s, "-", "")
	b, err := hex.DecodeString(digits)
	if err != nil || len(b) != 16 {
		return ""
	}
	if isOneByte(b) || digits == "03000200040005000006000700080009" || digits == "00020003000400050006000700080009" ||
		strings.HasPrefix(digits, "0123456789abcdef") {
		return ""
	}
	return digits[:8] + "-" + digits[8:12] + "-" + digits[12:16] + "-" + digits[16:20] + "-" + digits[20:]
}

func isOneByte(b []byte) bool {
	return !slices.ContainsFunc(b, func(c byte) bool { return c != b[0] })
}

// cleanHint drops what board makers leave in SMBIOS fields that nobody filled in: such a text names no machine.
func cleanHint(s string) string {
	low := strings.ToLower(strings.Trim(s, " .-_*#"))
	switch low {
	case "", "none", "null", "na", "n/a", "unknown", "default", "default string", "empty", "invalid", "o.e.m", "oem",
		"to be filled by o.e.m", "to be filled by oem", "not specified", "not available", "not applicable", "not settable",
		"serial", "serial number", "system serial number", "system manufacturer", "system product name", "system version",
		"chassis serial number", "base board serial number", "mb-1234567890", "no asset tag", "no asset information", "asset tag",
		"asset-1234567890", "01234567", "0123456789", "123456789", "1234567890", "012345678", "0123456789abcdef", "xxxxxxx":
		return ""
	}
	if len(low) > 3 && isOneByte([]byte(low)) {
		return "" // 0000000, ffffffff, xxxxxxxx
	}
	return s
}
