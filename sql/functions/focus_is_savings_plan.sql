-- Whether a commitment of a FOCUS line is a Savings Plan; any other is a reservation.
-- args: category, type, commitment_discount_id
coalesce(category, '') = 'Spend' or coalesce(type, '') like 'Savings%' or commitment_discount_id like '%:savingsplan%'
