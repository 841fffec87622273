package host

import (
	"strings"

	"slipway.dev/slipway/agent/wire"
	"slipway.dev/slipway/inventory"
)

// Arguments are the kernel arguments that the agent reads.
type Arguments struct {
	Session   string
	Others    []string      // URLs of other boot listeners that know the session
	BootMAC   inventory.MAC // of the port it booted from; "" when not told
	HasShell  bool          // the admin allows a shell on the console
	HasDebug  bool          // the agent writes more on the console
	Drivers   []Driver
	Addresses []string // values of ip=, as the kernel's documentation (nfsroot) has them
}

// Driver chooses a module for devices by hand.
type Driver struct {
	For    string // network, storage, or a PCI id such as 8086:1572
	Module string // "none" loads no driver for them
}

// ParseArguments reads a kernel command line. It keeps arguments that it does not know, for other programs. Of an argument
// that comes twice, the last counts.
func ParseArguments(cmdline string) Arguments {
	var a Arguments
	// The loader of the machine's firmware may have added words of its own. A word that cannot be read is left out: an agent
	// that stops here could not even report why.
	for _, word := range split(cmdline) {
		key, value, _ := strings.Cut(word, "=")
		value = strings.Trim(value, `"`)
		switch key {
		case wire.ArgServer:
			a.Session = strings.TrimSuffix(value, "/")
		case wire.ArgOther:
			if value != "" && len(a.Others) < 8 {
				a.Others = append(a.Others, strings.TrimSuffix(value, "/"))
			}
		case wire.ArgDebug:
			a.HasShell, a.HasDebug = value == "shell", value != ""
		case wire.ArgMAC:
			// 01-52-54-00-aa-00-01: the hardware type comes first (pxelinux), and some write the MAC alone.
			if len(value) == len("01-52-54-00-aa-00-01") {
				value = value[3:]
			}
			if mac, err := inventory.ParseMAC(value); err == nil {
				a.BootMAC = mac
			}
		case wire.ArgDriver:
			// The value has a = of its own, as in slipway.driver=network=ixgbe. The argument may come several times; the bound
			// is against a command line that some program has doubled over and over.
			if of, module, ok := strings.Cut(value, "="); ok && of != "" && module != "" && len(a.Drivers) < 64 {
				a.Drivers = append(a.Drivers, Driver{For: strings.ToLower(of), Module: module})
			}
		case "ip":
			if len(a.Addresses) < 16 {
				a.Addresses = append(a.Addresses, value)
			}
		}
	}
	return a
}

// split cuts at blanks outside double quotes, as the kernel does.
func split(cmdline string) []string {
	quoted := false
	return strings.FieldsFunc(cmdline, func(r rune) bool {
		if r == '"' {
			quoted = !quoted
		}
		return !quoted && (r == ' ' || r == '\t' || r == '\n')
	})
}
