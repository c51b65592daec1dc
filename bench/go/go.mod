module northroot/bench

go 1.19
