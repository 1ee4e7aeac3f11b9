-- Whether a FOCUS line is use, which shows how far the bill is; what our own export accrues of a fee is none.
-- args: line
line.charge_category = 'Usage'
    and coalesce(line.x_line_item_type not in ('Fee', 'Refund', 'RIFee', 'SavingsPlanRecurringFee'), true)
