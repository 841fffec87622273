package option

import "slices"

// known is an option with a name: IANA's numbers, the names that other DHCP servers use for them, and how they are sent.
type known struct {
	code  int
	name  string
	kind  Type
	isOne bool // it takes one value
}

var options4 = []known{
	{2, "time-offset", Int32, true},
	{3, "routers", Address, false},
	{4, "time-servers", Address, false},
	{5, "name-servers", Address, false},
	{6, "domain-name-servers", Address, false},
	{7, "log-servers", Address, false},
	{8, "cookie-servers", Address, false},
	{9, "lpr-servers", Address, false},
	{10, "impress-servers", Address, false},
	{11, "resource-location-servers", Address, false},
	{12, "host-name", Text, false},
	{13, "boot-size", Uint16, true},
	{14, "merit-dump", Text, false},
	{15, "domain-name", Text, false},
	{16, "swap-server", Address, true},
	{17, "root-path", Text, false},
	{18, "extensions-path", Text, false},
	{19, "ip-forwarding", Bool, true},
	{20, "non-local-source-routing", Bool, true},
	{21, "policy-filter", Address, false},
	{22, "max-dgram-reassembly", Uint16, true},
	{23, "default-ip-ttl", Uint8, true},
	{24, "path-mtu-aging-timeout", Uint32, true},
	{25, "path-mtu-plateau-table", Uint16, false},
	{26, "interface-mtu", Uint16, true},
	{27, "all-subnets-local", Bool, true},
	{28, "broadcast-address", Address, true},
	{29, "perform-mask-discovery", Bool, true},
	{30, "mask-supplier", Bool, true},
	{31, "router-discovery", Bool, true},
	{32, "router-solicitation-address", Address, true},
	{33, "static-routes", Address, false},
	{34, "trailer-encapsulation", Bool, true},
	{35, "arp-cache-timeout", Uint32, true},
	{36, "ieee802-3-encapsulation", Bool, true},
	{37, "default-tcp-ttl", Uint8, true},
	{38, "tcp-keepalive-interval", Uint32, true},
	{39, "tcp-keepalive-garbage", Bool, true},
	{40, "nis-domain", Text, false},
	{41, "nis-servers", Address, false},
	{42, "ntp-servers", Address, false},
	{43, "vendor-encapsulated-options", Hex, false},
	{44, "netbios-name-servers", Address, false},
	{45, "netbios-dd-server", Address, false},
	{46, "netbios-node-type", Uint8, true},
	{47, "netbios-scope", Text, false},
	{48, "font-servers", Address, false},
	{49, "x-display-manager", Address, false},
	{60, "vendor-class-identifier", Text, false},
	{64, "nisplus-domain-name", Text, false},
	{65, "nisplus-servers", Address, false},
	{66, "tftp-server-name", Text, false},
	{67, "boot-file-name", Text, false},
	{68, "mobile-ip-home-agent", Address, false},
	{69, "smtp-server", Address, false},
	{70, "pop-server", Address, false},
	{71, "nntp-server", Address, false},
	{72, "www-server", Address, false},
	{73, "finger-server", Address, false},
	{74, "irc-server", Address, false},
	{75, "streettalk-server", Address, false},
	{76, "streettalk-directory-assistance-server", Address, false},
	{78, "slp-directory-agent", Hex, false},
	{79, "slp-service-scope", Hex, false},
	{85, "nds-servers", Address, false},
	{86, "nds-tree-name", Text, false},
	{87, "nds-context", Text, false},
	{88, "bcms-controller-names", Domain, false},
	{89, "bcms-controller-address", Address, false},
	{100, "pcode", Text, false},
	{101, "tcode", Text, false},
	{108, "v6-only-preferred", Uint32, true},
	{112, "netinfo-server-address", Address, false},
	{113, "netinfo-server-tag", Text, false},
	{114, "default-url", Text, false},
	{116, "auto-config", Uint8, true},
	{117, "name-service-search", Uint16, false},
	{119, "domain-search", Domain, false},
	{120, "sip-servers", Hex, false},
	{121, "classless-static-routes", Routes, false},
	{125, "vivso", Hex, false},
	{136, "pana-agent", Address, false},
	{137, "v4-lost", Domain, true},
	{138, "capwap-ac-v4", Address, false},
	{141, "sip-ua-cs-domains", Domain, false},
	{143, "v4-sztp-redirect", Hex, false},
	{150, "tftp-server-address", Address, false},
	{208, "pxelinux-magic", Hex, false},
	{209, "config-file", Text, false},
	{210, "path-prefix", Text, false},
	{211, "reboot-time", Uint32, true},
	{213, "v4-access-domain", Domain, true},
	{249, "ms-classless-static-routes", Routes, false},
	{252, "wpad-url", Text, false},
}

var options6 = []known{
	{17, "vendor-opts", Hex, false},
	{21, "sip-server-dns", Domain, false},
	{22, "sip-server-addr", Address, false},
	{23, "dns-servers", Address, false},
	{24, "domain-search", Domain, false},
	{27, "nis-servers", Address, false},
	{28, "nisp-servers", Address, false},
	{29, "nis-domain-name", Domain, true},
	{30, "nisp-domain-name", Domain, true},
	{31, "sntp-servers", Address, false},
	{32, "information-refresh-time", Uint32, true},
	{33, "bcmcs-server-dns", Domain, false},
	{34, "bcmcs-server-addr", Address, false},
	{40, "pana-agent", Address, false},
	{41, "posix-timezone", Text, false},
	{42, "tzdb-timezone", Text, false},
	{51, "v6-lost", Domain, true},
	{52, "capwap-ac-v6", Address, false},
	{56, "ntp-server", Hex, false},
	{57, "v6-access-domain", Domain, true},
	{58, "sip-ua-cs-list", Domain, false},
	{59, "bootfile-url", Text, false},
	{60, "bootfile-param", Hex, false},
	{64, "aftr-name", Domain, true},
	{82, "sol-max-rt", Uint32, true},
	{83, "inf-max-rt", Uint32, true},
	{103, "v6-captive-portal", Text, false},
	{136, "v6-sztp-redirect", Hex, false},
}

func table(is6 bool) []known {
	if is6 {
		return options6
	}
	return options4
}

func knownAs(code int, is6 bool) known {
	table := table(is6)
	if i := slices.IndexFunc(table, func(k known) bool { return k.code == code }); i >= 0 {
		return table[i]
	}
	return known{}
}

// Why the server does not take options from a list.
const (
	onlyClientsSend = "only clients send it"
	leaseTimes      = "lease times are leaseFor and bootLeaseFor of the subnet"
	ofTheProtocol   = "the protocol itself needs it"
	notSupported    = "the server has nothing that it could stand for"
)

var own4 = map[int]string{
	0: "it only fills up", 1: "it is made of the network of the subnet", 50: onlyClientsSend, 51: leaseTimes, 52: ofTheProtocol,
	53: ofTheProtocol, 54: "it is the server's own address", 55: onlyClientsSend, 56: "it is the reason of a refusal", 57: onlyClientsSend,
	58: leaseTimes, 59: leaseTimes, 61: "clients get their own back", 77: onlyClientsSend, 80: ofTheProtocol, 81: notSupported,
	82: "relay agents get their own back", 90: notSupported, 91: notSupported, 92: notSupported, 93: onlyClientsSend, 94: onlyClientsSend,
	97: "clients get their own back", 118: onlyClientsSend, 124: onlyClientsSend, 145: notSupported, 175: "it belongs to iPXE, which the server answers itself",
	255: "it is the end of a packet",
}

var own6 = map[int]string{
	1: "clients get their own back", 2: "it is the server's own identifier", 3: ofTheProtocol, 4: ofTheProtocol, 5: ofTheProtocol, 6: onlyClientsSend,
	7: ofTheProtocol, 8: onlyClientsSend, 9: ofTheProtocol, 11: notSupported, 12: notSupported, 13: ofTheProtocol, 14: ofTheProtocol,
	15: onlyClientsSend, 16: "it tells UEFI firmware that the server boots it", 18: "relay agents get their own back", 19: notSupported, 20: notSupported,
	25: notSupported, 26: notSupported, 37: "relay agents send it", 38: "relay agents send it", 39: notSupported, 61: onlyClientsSend, 62: onlyClientsSend,
	79: "relay agents send it", 135: "relay agents send it",
}

// ownReason says why an option is not taken from a list, "" if it is.
func ownReason(code int, is6 bool) string {
	if is6 {
		return own6[code]
	}
	return own4[code]
}

// field is a field of ours that says what an option says.
type field struct {
	name string
	of   Owner
}

var fields4 = map[int]field{
	3: {"gateway", OfSubnet}, 6: {"dns", OfSubnet}, 12: {"hostname", OfReservation}, 15: {"domain", OfSubnet},
	26: {"mtu", OfSubnet}, 42: {"ntp", OfSubnet}, 121: {"routes", OfSubnet},
}

var fields6 = map[int]field{23: {"dns", OfSubnet}, 24: {"domain", OfSubnet}, 56: {"ntp", OfSubnet}}

// fieldOf returns the field that is to be used instead of an option. A class and a reservation have no gateway of
// their own: there the option goes before the subnet's field. A host name is of one machine and nobody else.
func fieldOf(code int, is6 bool, owner Owner) (field, bool) {
	fields := fields4
	if is6 {
		fields = fields6
	}
	f, ok := fields[code]
	return f, ok && (f.of == owner || f.of == OfReservation)
}

// IsBoot reports whether an option decides what a machine boots. The server's decision sets these options, and a list
// of options never does.
func IsBoot(code int, is6 bool) bool {
	if is6 {
		return code == 59 || code == 60
	}
	return slices.Contains([]int{43, 60, 66, 67, 150, 208, 209, 210, 211}, code)
}
