package overlap

import "time"

// interval is how often a program logs what it shows, unless it has many logs.
const interval = 5 * time.Millisecond

// Until samples look every Interval until over is closed.
func (w *Writer) Until(over <-chan struct{}, look func() (id, count int, token int64)) error {
	ticker := time.NewTicker(w.Interval)
	defer ticker.Stop()
	for {
		if err := w.Sample(look); err != nil {
			return err
		}
		select {
		case <-over:
			return nil
		case <-ticker.C:
		}
	}
}

// Nothing is what a program shows that has no id.
func Nothing() (id, count int, token int64) { return None, 0, 0 }
