package inventory

import "slices"

// knownOption is an option with a name: IANA's numbers, the names that other DHCP servers use for them, and how they are sent.
type knownOption struct {
	code  int
	name  string
	kind  OptionType
	isOne bool // it takes one value
}

var options4 = []knownOption{
	{2, "time-offset", OptionInt32, true},
	{3, "routers", OptionAddress, false},
	{4, "time-servers", OptionAddress, false},
	{5, "name-servers", OptionAddress, false},
	{6, "domain-name-servers", OptionAddress, false},
	{7, "log-servers", OptionAddress, false},
	{8, "cookie-servers", OptionAddress, false},
	{9, "lpr-servers", OptionAddress, false},
	{10, "impress-servers", OptionAddress, false},
	{11, "resource-location-servers", OptionAddress, false},
	{12, "host-name", OptionText, false},
	{13, "boot-size", OptionUint16, true},
	{14, "merit-dump", OptionText, false},
	{15, "domain-name", OptionText, false},
	{16, "swap-server", OptionAddress, true},
	{17, "root-path", OptionText, false},
	{18, "extensions-path", OptionText, false},
	{19, "ip-forwarding", OptionBool, true},
	{20, "non-local-source-routing", OptionBool, true},
	{21, "policy-filter", OptionAddress, false},
	{22, "max-dgram-reassembly", OptionUint16, true},
	{23, "default-ip-ttl", OptionUint8, true},
	{24, "path-mtu-aging-timeout", OptionUint32, true},
	{25, "path-mtu-plateau-table", OptionUint16, false},
	{26, "interface-mtu", OptionUint16, true},
	{27, "all-subnets-local", OptionBool, true},
	{28, "broadcast-address", OptionAddress, true},
	{29, "perform-mask-discovery", OptionBool, true},
	{30, "mask-supplier", OptionBool, true},
	{31, "router-discovery", OptionBool, true},
	{32, "router-solicitation-address", OptionAddress, true},
	{33, "static-routes", OptionAddress, false},
	{34, "trailer-encapsulation", OptionBool, true},
	{35, "arp-cache-timeout", OptionUint32, true},
	{36, "ieee802-3-encapsulation", OptionBool, true},
	{37, "default-tcp-ttl", OptionUint8, true},
	{38, "tcp-keepalive-interval", OptionUint32, true},
	{39, "tcp-keepalive-garbage", OptionBool, true},
	{40, "nis-domain", OptionText, false},
	{41, "nis-servers", OptionAddress, false},
	{42, "ntp-servers", OptionAddress, false},
	{43, "vendor-encapsulated-options", OptionHex, false},
	{44, "netbios-name-servers", OptionAddress, false},
	{45, "netbios-dd-server", OptionAddress, false},
	{46, "netbios-node-type", OptionUint8, true},
	{47, "netbios-scope", OptionText, false},
	{48, "font-servers", OptionAddress, false},
	{49, "x-display-manager", OptionAddress, false},
	{60, "vendor-class-identifier", OptionText, false},
	{64, "nisplus-domain-name", OptionText, false},
	{65, "nisplus-servers", OptionAddress, false},
	{66, "tftp-server-name", OptionText, false},
	{67, "boot-file-name", OptionText, false},
	{68, "mobile-ip-home-agent", OptionAddress, false},
	{69, "smtp-server", OptionAddress, false},
	{70, "pop-server", OptionAddress, false},
	{71, "nntp-server", OptionAddress, false},
	{72, "www-server", OptionAddress, false},
	{73, "finger-server", OptionAddress, false},
	{74, "irc-server", OptionAddress, false},
	{75, "streettalk-server", OptionAddress, false},
	{76, "streettalk-directory-assistance-server", OptionAddress, false},
	{78, "slp-directory-agent", OptionHex, false},
	{79, "slp-service-scope", OptionHex, false},
	{85, "nds-servers", OptionAddress, false},
	{86, "nds-tree-name", OptionText, false},
	{87, "nds-context", OptionText, false},
	{88, "bcms-controller-names", OptionDomain, false},
	{89, "bcms-controller-address", OptionAddress, false},
	{100, "pcode", OptionText, false},
	{101, "tcode", OptionText, false},
	{108, "v6-only-preferred", OptionUint32, true},
	{112, "netinfo-server-address", OptionAddress, false},
	{113, "netinfo-server-tag", OptionText, false},
	{114, "default-url", OptionText, false},
	{116, "auto-config", OptionUint8, true},
	{117, "name-service-search", OptionUint16, false},
	{119, "domain-search", OptionDomain, false},
	{120, "sip-servers", OptionHex, false},
	{121, "classless-static-routes", OptionRoutes, false},
	{125, "vivso", OptionHex, false},
	{136, "pana-agent", OptionAddress, false},
	{137, "v4-lost", OptionDomain, true},
	{138, "capwap-ac-v4", OptionAddress, false},
	{141, "sip-ua-cs-domains", OptionDomain, false},
	{143, "v4-sztp-redirect", OptionHex, false},
	{150, "tftp-server-address", OptionAddress, false},
	{208, "pxelinux-magic", OptionHex, false},
	{209, "config-file", OptionText, false},
	{210, "path-prefix", OptionText, false},
	{211, "reboot-time", OptionUint32, true},
	{213, "v4-access-domain", OptionDomain, true},
	{249, "ms-classless-static-routes", OptionRoutes, false},
	{252, "wpad-url", OptionText, false},
}

var options6 = []knownOption{
	{17, "vendor-opts", OptionHex, false},
	{21, "sip-server-dns", OptionDomain, false},
	{22, "sip-server-addr", OptionAddress, false},
	{23, "dns-servers", OptionAddress, false},
	{24, "domain-search", OptionDomain, false},
	{27, "nis-servers", OptionAddress, false},
	{28, "nisp-servers", OptionAddress, false},
	{29, "nis-domain-name", OptionDomain, true},
	{30, "nisp-domain-name", OptionDomain, true},
	{31, "sntp-servers", OptionAddress, false},
	{32, "information-refresh-time", OptionUint32, true},
	{33, "bcmcs-server-dns", OptionDomain, false},
	{34, "bcmcs-server-addr", OptionAddress, false},
	{40, "pana-agent", OptionAddress, false},
	{41, "posix-timezone", OptionText, false},
	{42, "tzdb-timezone", OptionText, false},
	{51, "v6-lost", OptionDomain, true},
	{52, "capwap-ac-v6", OptionAddress, false},
	{56, "ntp-server", OptionHex, false},
	{57, "v6-access-domain", OptionDomain, true},
	{58, "sip-ua-cs-list", OptionDomain, false},
	{59, "bootfile-url", OptionText, false},
	{60, "bootfile-param", OptionHex, false},
	{64, "aftr-name", OptionDomain, true},
	{82, "sol-max-rt", OptionUint32, true},
	{83, "inf-max-rt", OptionUint32, true},
	{103, "v6-captive-portal", OptionText, false},
	{136, "v6-sztp-redirect", OptionHex, false},
}

func optionTable(is6 bool) []knownOption {
	if is6 {
		return options6
	}
	return options4
}

func knownAs(code int, is6 bool) knownOption {
	table := optionTable(is6)
	if i := slices.IndexFunc(table, func(k knownOption) bool { return k.code == code }); i >= 0 {
		return table[i]
	}
	return knownOption{}
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

// ownOption says why an option is not taken from a list, "" if it is.
func ownOption(code int, is6 bool) string {
	if is6 {
		return own6[code]
	}
	return own4[code]
}

// optionField is a field of ours that says what an option says.
type optionField struct {
	name string
	of   OptionOwner
}

var fields4 = map[int]optionField{
	3: {"gateway", OptionsOfSubnet}, 6: {"dns", OptionsOfSubnet}, 12: {"hostname", OptionsOfReservation}, 15: {"domain", OptionsOfSubnet},
	26: {"mtu", OptionsOfSubnet}, 42: {"ntp", OptionsOfSubnet}, 121: {"routes", OptionsOfSubnet},
}

var fields6 = map[int]optionField{23: {"dns", OptionsOfSubnet}, 24: {"domain", OptionsOfSubnet}, 56: {"ntp", OptionsOfSubnet}}

// fieldOfOption returns the field that is to be used instead of an option. A class and a reservation have no gateway of
// their own: there the option goes before the subnet's field. A host name is of one machine and nobody else.
func fieldOfOption(code int, is6 bool, owner OptionOwner) (optionField, bool) {
	fields := fields4
	if is6 {
		fields = fields6
	}
	f, ok := fields[code]
	return f, ok && (f.of == owner || f.of == OptionsOfReservation)
}

// IsBootOption reports whether an option decides what a machine boots. The server's decision sets these options, and a list
// of options never does.
func IsBootOption(code int, is6 bool) bool {
	if is6 {
		return code == 59 || code == 60
	}
	return slices.Contains([]int{43, 60, 66, 67, 150, 208, 209, 210, 211}, code)
}
