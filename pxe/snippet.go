package pxe

import (
	"encoding/json"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"slipway.dev/slipway/inventory"
)

// Snippet is the configuration with which another DHCP server sends the machines of a network to us.
type Snippet struct {
	Server string `json:"server"`         // dnsmasq, kea, ...
	Name   string `json:"name"`           // for people
	File   string `json:"file,omitempty"` // where it usually goes
	Check  string `json:"check,omitempty" doc:"What looks whether the file is right"`
	Text   string `json:"text"`
	Note   string `json:"note,omitempty"`
}

// sent is what machines of one kind are sent to.
type sent struct {
	word   string // names the kind in the snippets
	about  string
	arches []int  // option 93
	file   string // loader, by TFTP
	url    string // of HTTP boot
}

// snippetServers writes the snippets, in the order in which they are listed.
var snippetServers = []struct {
	Snippet
	write func(s inventory.Subnet, us netip.Addr, base string, kinds []sent) string
}{
	{Snippet{
		Server: "dnsmasq", Name: "dnsmasq", File: "/etc/dnsmasq.d/slipway.conf", Check: "dnsmasq --test -C /etc/dnsmasq.d/slipway.conf",
		Note: "It holds for all networks of that dnsmasq.",
	}, dnsmasqSnippet},
	{Snippet{
		Server: "kea", Name: "Kea", File: "/etc/kea/kea-dhcp4.conf", Check: "kea-dhcp4 -t /etc/kea/kea-dhcp4.conf",
		Note: "Put the classes into the client-classes of your own Dhcp4. They hold for all networks of that Kea.",
	}, keaSnippet},
	{Snippet{
		Server: "dhcpd", Name: "ISC dhcpd", File: "/etc/dhcp/dhcpd.conf", Check: "dhcpd -t -cf /etc/dhcp/dhcpd.conf",
		Note: "Option and class stand outside of your subnet; they look at nothing else that you have.",
	}, dhcpdSnippet},
	{Snippet{
		Server: "mikrotik", Name: "MikroTik RouterOS 7", Note: "Not tried by us on a RouterOS. Name your DHCP server and address pool in the first two lines.",
	}, mikrotikSnippet},
	{Snippet{
		Server: "windows", Name: "Windows Server", Note: "For a PowerShell on the DHCP server. Not tried by us on a Windows Server.",
	}, windowsSnippet},
}

// Snippets returns the configurations with which other DHCP servers send the machines of a subnet to us. They name our
// address there and the port of the boot listener. server narrows them to one; "" is all.
func Snippets(s inventory.Subnet, us netip.Addr, port int, server string) (out []Snippet) {
	base := BaseURL(us, port)
	kinds := sentOf(base)
	for _, w := range snippetServers {
		if server == "" || server == w.Server {
			w.Text = w.write(s, us, base, kinds)
			out = append(out, w.Snippet)
		}
	}
	return out
}

// sentOf says what each kind of firmware is sent to: the best of the loaders that our own answers choose from.
func sentOf(base string) (kinds []sent) {
	for _, k := range []struct {
		word, about string
		arches      []int
		firmware    inventory.Firmware
		arch        inventory.Arch
	}{
		{"bios", "BIOS", []int{0}, inventory.BIOS, inventory.X8664},
		{"efi32", "UEFI, 32 bit", []int{6}, inventory.UEFI, inventory.I386},
		{"efi64", "UEFI", []int{7, 9}, inventory.UEFI, inventory.X8664},
		{"arm64", "UEFI, ARM", []int{11}, inventory.UEFI, inventory.ARM64},
		{"http64", "UEFI HTTP Boot", []int{16}, inventory.UEFIHTTP, inventory.X8664},
		{"httparm64", "UEFI HTTP Boot, ARM", []int{19}, inventory.UEFIHTTP, inventory.ARM64},
	} {
		name := Candidates(k.firmware, k.arch)[0].Name
		kind := sent{word: k.word, about: k.about, arches: k.arches, file: name}
		if k.firmware == inventory.UEFIHTTP {
			kind.url = URL(base, "", name)
		}
		kinds = append(kinds, kind)
	}
	return kinds
}

func heading(comment string, s inventory.Subnet, us netip.Addr) string {
	return fmt.Sprintf("%s Machines of subnet %s (%s) boot from Slipway at %s.\n", comment, s.Name, s.CIDR, us)
}

func dnsmasqSnippet(s inventory.Subnet, us netip.Addr, base string, kinds []sent) string {
	var b strings.Builder
	b.WriteString(heading("#", s, us))
	b.WriteString("dhcp-match=set:slipway-ipxe,175\n")
	for _, k := range kinds {
		for _, a := range k.arches {
			fmt.Fprintf(&b, "dhcp-match=set:slipway-%s,option:client-arch,%d\n", k.word, a)
		}
	}
	fmt.Fprintf(&b, "dhcp-boot=tag:slipway-ipxe,%s,,%s\n", URL(base, "", "ask"), us)
	for _, k := range kinds {
		if k.url == "" {
			fmt.Fprintf(&b, "dhcp-boot=tag:!slipway-ipxe,tag:slipway-%s,%s,,%s\n", k.word, k.file, us)
			continue
		}
		fmt.Fprintf(&b, "dhcp-option-force=tag:!slipway-ipxe,tag:slipway-%s,60,HTTPClient\n", k.word)
		fmt.Fprintf(&b, "dhcp-boot=tag:!slipway-ipxe,tag:slipway-%s,%s\n", k.word, k.url)
	}
	return b.String()
}

func keaSnippet(s inventory.Subnet, us netip.Addr, base string, kinds []sent) string {
	type option struct {
		Name string `json:"name"`
		Data string `json:"data"`
	}
	type class struct {
		Name    string   `json:"name"`
		Test    string   `json:"test"`
		Next    string   `json:"next-server,omitempty"`
		File    string   `json:"boot-file-name"`
		Options []option `json:"option-data,omitempty"`
	}
	classes := []class{{Name: "slipway-ipxe", Test: "option[175].exists", File: URL(base, "", "ask")}}
	for _, k := range kinds {
		var arches []string
		for _, a := range k.arches {
			arches = append(arches, fmt.Sprintf("option[93].hex == 0x%04x", a))
		}
		c := class{Name: "slipway-" + k.word, Test: "(" + strings.Join(arches, " or ") + ") and not option[175].exists", Next: us.String(), File: k.file}
		if k.url != "" {
			c.Next, c.File, c.Options = "", k.url, []option{{"vendor-class-identifier", "HTTPClient"}}
		}
		classes = append(classes, c)
	}
	doc, err := json.MarshalIndent(map[string]any{"Dhcp4": map[string]any{"client-classes": classes}}, "", "  ")
	if err != nil {
		return err.Error() // it is made of texts only
	}
	return heading("//", s, us) + string(doc) + "\n"
}

func dhcpdSnippet(s inventory.Subnet, us netip.Addr, base string, kinds []sent) string {
	var b strings.Builder
	b.WriteString(heading("#", s, us))
	b.WriteString("option slipway-arch code 93 = unsigned integer 16;\noption slipway-ipxe code 175 = string;\n\nclass \"slipway\" {\n")
	b.WriteString("  match if substring (option vendor-class-identifier, 0, 9) = \"PXEClient\"\n    or substring (option vendor-class-identifier, 0, 10) = \"HTTPClient\";\n")
	fmt.Fprintf(&b, "  next-server %s;\n", us)
	fmt.Fprintf(&b, "  if exists slipway-ipxe {\n    filename %q;\n  }", URL(base, "", "ask"))
	for _, k := range kinds {
		var arches []string
		for _, a := range k.arches {
			arches = append(arches, fmt.Sprintf("option slipway-arch = %02x:%02x", a>>8, a&0xff)) // dhcpd compares options as bytes
		}
		fmt.Fprintf(&b, " elsif %s {\n", strings.Join(arches, " or "))
		if k.url != "" {
			fmt.Fprintf(&b, "    option vendor-class-identifier \"HTTPClient\";\n    filename %q;\n  }", k.url)
		} else {
			fmt.Fprintf(&b, "    filename %q;\n  }", k.file)
		}
	}
	b.WriteString("\n}\n")
	return b.String()
}

// mikrotikSnippet sends by what firmware calls itself in option 60, which matchers can compare as text.
func mikrotikSnippet(s inventory.Subnet, us netip.Addr, base string, kinds []sent) string {
	var b strings.Builder
	b.WriteString(heading("#", s, us))
	b.WriteString(":local server \"dhcp1\"\n:local pool \"dhcp_pool1\"\n\n")
	fmt.Fprintf(&b, "/ip dhcp-server network set [find address=%s] next-server=%s\n", s.CIDR, us)
	fmt.Fprintf(&b, "/ip dhcp-server option add name=slipway-next code=66 value=\"'%s'\"\n", us)
	fmt.Fprintf(&b, "/ip dhcp-server option add name=slipway-ipxe code=67 value=\"'%s'\"\n", URL(base, "", "ask"))
	b.WriteString("/ip dhcp-server option sets add name=slipway-ipxe options=slipway-next,slipway-ipxe\n")
	b.WriteString("/ip dhcp-server matcher add name=slipway-ipxe server=$server address-pool=$pool code=77 value=\"iPXE\" option-set=slipway-ipxe\n")
	isHTTP := slices.ContainsFunc(kinds, func(k sent) bool { return k.url != "" })
	if isHTTP {
		b.WriteString("/ip dhcp-server option add name=slipway-http code=60 value=\"'HTTPClient'\"\n")
	}
	for _, k := range kinds {
		file, first, class := k.file, "slipway-next", "PXEClient"
		if k.url != "" {
			file, first, class = k.url, "slipway-http", "HTTPClient"
		}
		fmt.Fprintf(&b, "/ip dhcp-server option add name=slipway-%s code=67 value=\"'%s'\"\n", k.word, file)
		fmt.Fprintf(&b, "/ip dhcp-server option sets add name=slipway-%s options=%s,slipway-%s\n", k.word, first, k.word)
		for _, a := range k.arches {
			fmt.Fprintf(&b, "/ip dhcp-server matcher add name=slipway-%s-%d server=$server address-pool=$pool code=60 matching-type=substring value=\"%s:Arch:%05d\" option-set=slipway-%s\n",
				k.word, a, class, a, k.word)
		}
	}
	return b.String()
}

func windowsSnippet(s inventory.Subnet, us netip.Addr, base string, kinds []sent) string {
	var b strings.Builder
	b.WriteString(heading("#", s, us))
	fmt.Fprintf(&b, "$scope = '%s'\n", s.CIDR.Addr())
	b.WriteString("Add-DhcpServerv4Class -Name 'Slipway iPXE' -Type User -Data 'iPXE'\n")
	b.WriteString("Add-DhcpServerv4Policy -ScopeId $scope -Name 'Slipway iPXE' -Condition OR -UserClass EQ,'Slipway iPXE' -ProcessingOrder 1\n")
	fmt.Fprintf(&b, "Set-DhcpServerv4OptionValue -ScopeId $scope -PolicyName 'Slipway iPXE' -OptionId 67 -Value '%s'\n", URL(base, "", "ask"))
	order := 1
	for _, k := range kinds {
		var classes []string
		class := "PXEClient"
		if k.url != "" {
			class = "HTTPClient"
		}
		for _, a := range k.arches {
			name := fmt.Sprintf("Slipway %s:Arch:%05d", class, a)
			fmt.Fprintf(&b, "Add-DhcpServerv4Class -Name '%s' -Type Vendor -Data '%s:Arch:%05d'\n", name, class, a)
			classes = append(classes, "'"+name+"*'")
		}
		order++
		policy := "Slipway " + k.about
		fmt.Fprintf(&b, "Add-DhcpServerv4Policy -ScopeId $scope -Name '%s' -Condition OR -VendorClass EQ,%s -ProcessingOrder %d\n", policy, strings.Join(classes, ","), order)
		if k.url != "" {
			fmt.Fprintf(&b, "Set-DhcpServerv4OptionValue -ScopeId $scope -PolicyName '%s' -OptionId 60 -Value 'HTTPClient'\n", policy)
			fmt.Fprintf(&b, "Set-DhcpServerv4OptionValue -ScopeId $scope -PolicyName '%s' -OptionId 67 -Value '%s'\n", policy, k.url)
			continue
		}
		fmt.Fprintf(&b, "Set-DhcpServerv4OptionValue -ScopeId $scope -PolicyName '%s' -OptionId 66 -Value '%s'\n", policy, us)
		fmt.Fprintf(&b, "Set-DhcpServerv4OptionValue -ScopeId $scope -PolicyName '%s' -OptionId 67 -Value '%s'\n", policy, k.file)
	}
	return b.String()
}
