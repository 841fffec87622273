package postgres

// accept refuses a primary that is not where the newest changes are, and else notes where it is.
func (s *server) accept(at string, is Place) error {
	if is.isNone() {
		return nil
	}
	s.placing.Lock()
	defer s.placing.Unlock()
	want := s.place
	if want.isNone() && s.cfg.Place.System == is.System { // of another cluster was the last start: an admin has moved the inventory
		want = s.cfg.Place
	}
	if !want.isNone() && (is.System != want.System || is.Timeline < want.Timeline) {
		return &placeError{at, is, want}
	}
	s.place = is
	if is != s.cfg.Place && is != want && s.cfg.Placed != nil {
		s.cfg.Placed(is)
	}
	return nil
}

func (s *server) placeNow() Place {
	s.placing.Lock()
	defer s.placing.Unlock()
	return s.place
}
