package sqlstore

import "slipway.dev/slipway/inventory"

const (
	ranges6SQL       = `SELECT first, last FROM ranges6 WHERE subnet = $1 ORDER BY first`
	allRanges6SQL    = `SELECT subnet, first, last FROM ranges6 ORDER BY subnet, first`
	insertRange6SQL  = `INSERT INTO ranges6 (subnet, first, last) VALUES ($1, $2, $3)`
	deleteRanges6SQL = `DELETE FROM ranges6 WHERE subnet = $1`
)

// outsideIPv4 is what an IPv6 network has for its first and last address as a number: no number lies between them.
const outsideIPv4First, outsideIPv4Last = -1, -2

func (t *tx) ranges6(subnet string) ([]inventory.Range, error) {
	return list(t, func(s scan) (r inventory.Range, err error) {
		err = s(blobColumn(&r.First), blobColumn(&r.Last))
		return r, err
	}, ranges6SQL, subnet)
}

// allRanges6 adds the IPv6 ranges of all subnets.
func (t *tx) allRanges6(at map[string]*inventory.Subnet) error {
	return t.each(func(s scan) error {
		var name string
		var r inventory.Range
		if err := s(&name, blobColumn(&r.First), blobColumn(&r.Last)); err != nil {
			return err
		}
		at[name].Ranges = append(at[name].Ranges, r)
		return nil
	}, allRanges6SQL)
}

func (t *tx) insertRanges6(n *inventory.Subnet) error {
	for _, r := range n.Ranges {
		if _, err := t.write(insertRange6SQL, n.Name, addressBytes(r.First), addressBytes(r.Last)); err != nil {
			return err
		}
	}
	return nil
}

// overlap6 finds an IPv6 network that overlaps another's. There are few, and they change seldom: all are looked at.
func (t *tx) overlap6(n *inventory.Subnet) (name, cidr string, found bool, err error) {
	subnets, err := t.ListSubnets()
	if err != nil {
		return "", "", false, err
	}
	for _, s := range subnets {
		if s.Name != n.Name && s.CIDR.Overlaps(n.CIDR) {
			return s.Name, s.CIDR.String(), true, nil
		}
	}
	return "", "", false, nil
}
